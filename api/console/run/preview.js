// Previews of artifacts: text, Markdown, tables, JSON, images and PDF. No content is executed or parsed as HTML.

import { h } from "../dom.js";
import { dataTable } from "./data_table.js";
import { markdown } from "./markdown.js";

const MAX_TEXT_BYTES = 2 * 1024 * 1024;
const MAX_FILE_BYTES = 20 * 1024 * 1024;
const PDF = "application/pdf";
const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/svg+xml"];
const TEXTS = ["application/json", "application/x-ndjson", "application/xml", "application/yaml", "application/toml", "application/javascript"];
const TYPES_OF_NAMES = { csv: "text/csv", tsv: "text/tab-separated-values", jsonl: "application/x-ndjson", ndjson: "application/x-ndjson", json: "application/json" };

/** Return the media type of an artifact: that of its name where the runner knew none. */
function typeOf(row) {
  const named = TYPES_OF_NAMES[row.name.split(".").at(-1).toLowerCase()];
  return named ?? row.content_type.split(";")[0].trim().toLowerCase();
}

/** Return whether an artifact can be previewed. */
export function canPreview(row) {
  const type = typeOf(row);
  if (IMAGES.includes(type) || type === PDF) return row.size <= MAX_FILE_BYTES;
  return type.startsWith("text/") || TEXTS.includes(type);
}

/** Return how many bytes of an artifact its preview shows at most. */
export function previewBytes(row) {
  return IMAGES.includes(typeOf(row)) || typeOf(row) === PDF ? MAX_FILE_BYTES : MAX_TEXT_BYTES;
}

/** Return the element of a preview. */
export async function preview(blob, row) {
  const type = typeOf(row);
  if (IMAGES.includes(type)) return image(new Blob([blob], { type }), row.name);
  if (type === PDF) return pages(new Blob([blob], { type }), row.name);
  const text = await blob.text(), whole = row.size <= MAX_TEXT_BYTES;
  return [whole ? formatted(text, type, row.name) : h("pre", { tabindex: 0 }, text),
    !whole && h("p", { class: "quiet" }, "The first 2 MiB; download it for all.")];
}

function formatted(text, type, name) {
  if (type === "text/markdown" || /\.(md|markdown)$/i.test(name)) return h("div", { class: "shown", tabindex: 0 }, markdown(text));
  // Do not reformat JSON with numbers beyond JavaScript's precision.
  const exact = !/\d{16}/.test(text);
  const rows = exact || type.startsWith("text/") ? dataTable(text, type) : null;
  if (rows) return [rows, h("details", {}, h("summary", {}, "As text"), h("pre", { tabindex: 0 }, text))];
  return h("pre", { tabindex: 0 }, type === "application/json" && exact ? indented(text) : text);
}

function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function image(blob, name) {
  // In an img element an SVG runs no scripts and loads no resources.
  const url = URL.createObjectURL(blob);
  return h("div", { class: "shown" }, h("img", { src: url, alt: name, onload: () => URL.revokeObjectURL(url) }));
}

function pages(blob, name) {
  // The type of the blob is always PDF, so the browser shows it with its own viewer or offers to save it.
  const url = URL.createObjectURL(blob);
  return h("iframe", { class: "pages", src: url, title: name, onload: () => setTimeout(() => URL.revokeObjectURL(url), 60000) });
}
