// What an artifact looks like: text, Markdown, JSON and images. Nothing of it is executed, or read as HTML.

import { h } from "./dom.js";
import { markdown } from "./markdown.js";

const MOST = 2 * 1024 * 1024;
const MOST_IMAGE = 20 * 1024 * 1024;
const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/svg+xml"];
const TEXTS = ["application/json", "application/x-ndjson", "application/xml", "application/yaml", "application/toml", "application/javascript"];

const type = (row) => row.content_type.split(";")[0].trim().toLowerCase();

/** Whether it can be shown. */
export function shows(row) {
  if (IMAGES.includes(type(row))) return row.size <= MOST_IMAGE;
  return row.size <= MOST && (type(row).startsWith("text/") || TEXTS.includes(type(row)));
}

/** The element that shows it. */
export async function preview(blob, row) {
  if (IMAGES.includes(type(row))) return image(new Blob([blob], { type: type(row) }), row.name);
  const text = await blob.text();
  if (type(row) === "text/markdown" || /\.(md|markdown)$/i.test(row.name)) return h("div", { class: "shown" }, markdown(text));
  // Longer numbers than JavaScript has would be shown as others.
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
  // As an image an SVG runs no script and loads nothing.
  const url = URL.createObjectURL(blob);
  return h("div", { class: "shown" }, h("img", { src: url, alt: name, onload: () => URL.revokeObjectURL(url) }));
}
