// Tables of CSV, JSON lists of objects, and JSON lines.

import { h } from "../dom.js";
import { shorten } from "../format.js";
import { parseCsv } from "./csv.js";

const MAX_ROWS = 500;
const MAX_COLUMNS = 50;
const MAX_CELL_LENGTH = 500;

/** Return the table of a text of that media type, or null if it is none. */
export function dataTable(text, type) {
  if (type === "text/csv" || type === "text/tab-separated-values") {
    const { rows, more } = parseCsv(text, type === "text/csv" ? "," : "\t", MAX_ROWS + 1);
    return rows.length > 1 ? element(rows[0], rows.slice(1), more) : null;
  }
  const objects = parseObjects(text, type);
  if (!objects) return null;
  const shown = objects.slice(0, MAX_ROWS), names = [...new Set(shown.flatMap((row) => Object.keys(row)))];
  return element(names, shown.map((row) => names.map((name) => row[name] ?? "")), objects.length > MAX_ROWS);
}

function parseObjects(text, type) {
  let found;
  try {
    if (type === "application/x-ndjson") found = text.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line));
    else if (type === "application/json") found = JSON.parse(text);
  } catch {
    return null;
  }
  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  return Array.isArray(found) && found.length > 0 && found.every(isObject) ? found : null;
}

function element(heads, rows, more) {
  const names = heads.slice(0, MAX_COLUMNS);
  const cell = (value) => h("td", {}, shorten(value, MAX_CELL_LENGTH));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table" },
    h("table", {}, h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, shorten(name, MAX_CELL_LENGTH))))),
      h("tbody", {}, rows.map((row) => h("tr", {}, names.map((_, index) => cell(row[index] ?? "")))))),
    (more || heads.length > MAX_COLUMNS) && h("p", { class: "quiet" }, `The first ${rows.length} rows and ${names.length} columns; download it for all.`));
}
