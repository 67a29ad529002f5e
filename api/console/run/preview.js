// Previews of artifacts: text, Markdown, JSON and images. No content is executed or parsed as HTML.

import { h } from "../dom.js";
import { markdown } from "./markdown.js";

const MAX_TEXT_BYTES = 2 * 1024 * 1024;
const MAX_IMAGE_BYTES = 20 * 1024 * 1024;
const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/svg+xml"];
const TEXTS = ["application/json", "application/x-ndjson", "application/xml", "application/yaml", "application/toml", "application/javascript"];

const type = (row) => row.content_type.split(";")[0].trim().toLowerCase();

/** Return whether an artifact can be previewed. */
export function canPreview(row) {
  if (IMAGES.includes(type(row))) return row.size <= MAX_IMAGE_BYTES;
  return row.size <= MAX_TEXT_BYTES && (type(row).startsWith("text/") || TEXTS.includes(type(row)));
}

/** Return the element of a preview. */
export async function preview(blob, row) {
  if (IMAGES.includes(type(row))) return image(new Blob([blob], { type: type(row) }), row.name);
  const text = await blob.text();
  if (type(row) === "text/markdown" || /\.(md|markdown)$/i.test(row.name)) return h("div", { class: "shown" }, markdown(text));
  // Do not reformat JSON with numbers beyond JavaScript's precision.
  if (type(row) === "application/json" && !/\d{16}/.test(text)) {
    try {
      return h("pre", {}, JSON.stringify(JSON.parse(text), null, 2));
    } catch {
      return h("pre", {}, text);
    }
  }
  return h("pre", {}, text);
}

function image(blob, name) {
  // In an img element an SVG runs no scripts and loads no resources.
  const url = URL.createObjectURL(blob);
  return h("div", { class: "shown" }, h("img", { src: url, alt: name, onload: () => URL.revokeObjectURL(url) }));
}
