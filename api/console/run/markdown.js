// Renders a subset of Markdown as elements: headings, paragraphs, lists, tables, quotes, code, emphasis, rules. Links
// show their URL.

// Every regular expression runs in linear time: a hostile text must not block the page.

import { h } from "../dom.js";

const MAX_PARTS = 2000;
const MAX_BLOCKS = 5000;
const MAX_COLUMNS = 50;
// Stands for an escaped bar while a row is split.
const ESCAPED_BAR = "\0";

/** Return the elements of a text. */
export function markdown(text) {
  const elements = [], lines = text.split(/\r?\n/);
  let index = 0, budget = MAX_BLOCKS;
  for (; index < lines.length && budget > 0; budget -= 1) {
    const line = lines[index];
    const heading = /^(#{1,6})[ \t]+(.*)$/s.exec(line);
    const takeWhile = (test) => { const from = index; while (index < lines.length && test(lines[index])) index += 1; return lines.slice(from, index); };
    if (/^```/.test(line)) {
      index += 1;
      const code = takeWhile((next) => !/^```/.test(next));
      index += 1;
      elements.push(h("pre", {}, code.join("\n")));
    } else if (heading) {
      elements.push(h(`h${Math.min(6, heading[1].length + 2)}`, {}, inline(heading[2])));
      index += 1;
    } else if (isRule(line)) {
      elements.push(h("hr"));
      index += 1;
    } else if (line.includes("|") && isTableRule(lines[index + 1])) {
      const rows = takeWhile((next) => (budget -= 1) > 0 && next.includes("|"));
      if (rows.length === 0) break;
      elements.push(table(rows));
    } else if (/^\s*([-*+]|\d+[.)])\s+/.test(line)) {
      const items = takeWhile((next) => (budget -= 1) > 0 && (/^\s*([-*+]|\d+[.)])\s+/.test(next) || /^\s+\S/.test(next)));
      if (items.length === 0) break;
      const start = /^\s*(\d+)/.exec(line)?.[1];
      elements.push(h(start ? "ol" : "ul", { start }, listItems(items).map((item) => h("li", {}, inline(item)))));
    } else if (/^>/.test(line)) {
      elements.push(h("blockquote", {}, inline(takeWhile((next) => /^>/.test(next)).map((next) => next.replace(/^>\s?/, "")).join(" "))));
    } else if (/^\s*$/.test(line)) {
      index += 1;
    } else {
      const paragraph = takeWhile((next) => next.trim() !== "" && !/^(#{1,6}\s|```|>|\s*([-*+]|\d+[.)])\s+)/.test(next) && !isRule(next));
      // A line that only starts like another block is plain text; without this the loop would not advance.
      if (paragraph.length === 0) { paragraph.push(line); index += 1; }
      elements.push(h("p", {}, inline(paragraph.join(" "))));
    }
  }
  // Show the remainder of a long text unformatted.
  if (index < lines.length) elements.push(h("pre", {}, lines.slice(index).join("\n")));
  return elements;
}

function isRule(line) {
  return /^(-{3,}|\*{3,}|_{3,})$/.test(line.trim());
}

/** Return whether a line is that between the heads and the rows of a table: cells of dashes. */
function isTableRule(line) {
  return line !== undefined && line.includes("|") && cellsOf(line).every((cell) => /^:?-+:?$/.test(cell));
}

function cellsOf(line) {
  const text = line.trim().replaceAll("\\|", ESCAPED_BAR), from = text.startsWith("|") ? 1 : 0, to = text.length > 1 && text.endsWith("|") ? -1 : undefined;
  return text.slice(from, to).split("|", MAX_COLUMNS).map((cell) => cell.trim().replaceAll(ESCAPED_BAR, "|"));
}

function table([heads, , ...rows]) {
  const names = cellsOf(heads);
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table" }, h("table", {},
    h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, inline(name))))),
    h("tbody", {}, rows.map(cellsOf).map((cells) => h("tr", {}, names.map((_, index) => h("td", {}, inline(cells[index] ?? ""))))))));
}

function listItems(lines) {
  const items = [];
  for (const line of lines) {
    const item = /^\s*([-*+]|\d+[.)])\s+(.*)$/s.exec(line);
    if (item) items.push(item[2]);
    else items[items.length - 1] += ` ${line.trim()}`;
  }
  return items;
}

function inline(text) {
  const parts = [];
  let remainder = text;
  while (remainder && parts.length < MAX_PARTS) {
    const next = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*]+)\*|\[([^[\]]+)\]\(([^()\s]+)\)/.exec(remainder);
    if (!next) break;
    parts.push(remainder.slice(0, next.index));
    if (next[1]) parts.push(h("code", {}, next[1]));
    else if (next[2]) parts.push(h("b", {}, next[2]));
    else if (next[3]) parts.push(h("i", {}, next[3]));
    else parts.push(`${next[4]} (${next[5]})`);
    remainder = remainder.slice(next.index + next[0].length);
  }
  parts.push(remainder);
  return parts;
}
