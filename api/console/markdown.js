// A subset of Markdown as elements: headings, paragraphs, lists, quotes, code, emphasis. Links are shown with their address.

// Every expression goes over a text once: a hostile one must not hold the page up. `.` is any letter but a line's end.

import { h } from "./dom.js";

const MOST_PARTS = 2000;
const MOST_BLOCKS = 5000;

/** The elements of a text. */
export function markdown(text) {
  const found = [], lines = text.split(/\r?\n/);
  let at = 0, room = MOST_BLOCKS;
  for (; at < lines.length && room > 0; room -= 1) {
    const line = lines[at];
    const heading = /^(#{1,6})[ \t]+(.*)$/s.exec(line);
    const taken = (test) => { const from = at; while (at < lines.length && test(lines[at])) at += 1; return lines.slice(from, at); };
    if (/^```/.test(line)) {
      at += 1;
      const code = taken((next) => !/^```/.test(next));
      at += 1;
      found.push(h("pre", {}, code.join("\n")));
    } else if (heading) {
      found.push(h(`h${Math.min(6, heading[1].length + 2)}`, {}, inline(heading[2])));
      at += 1;
    } else if (/^\s*([-*+]|\d+[.)])\s+/.test(line)) {
      const items = taken((next) => (room -= 1) > 0 && (/^\s*([-*+]|\d+[.)])\s+/.test(next) || /^\s+\S/.test(next)));
      if (items.length === 0) break;
      found.push(h(/^\s*\d/.test(line) ? "ol" : "ul", {}, entries(items).map((item) => h("li", {}, inline(item)))));
    } else if (/^>/.test(line)) {
      found.push(h("blockquote", {}, inline(taken((next) => /^>/.test(next)).map((next) => next.replace(/^>\s?/, "")).join(" "))));
    } else if (/^\s*$/.test(line)) {
      at += 1;
    } else {
      const words = taken((next) => next.trim() !== "" && !/^(#{1,6}\s|```|>|\s*([-*+]|\d+[.)])\s+)/.test(next));
      // A line that begins like something else and is not: it is taken as it is, or nothing would go on.
      if (words.length === 0) { words.push(line); at += 1; }
      found.push(h("p", {}, inline(words.join(" "))));
    }
  }
  // The rest of a long text is shown as it is.
  if (at < lines.length) found.push(h("pre", {}, lines.slice(at).join("\n")));
  return found;
}

function entries(lines) {
  const found = [];
  for (const line of lines) {
    const item = /^\s*([-*+]|\d+[.)])\s+(.*)$/s.exec(line);
    if (item) found.push(item[2]);
    else found[found.length - 1] += ` ${line.trim()}`;
  }
  return found;
}

function inline(text) {
  const found = [];
  let rest = text;
  while (rest && found.length < MOST_PARTS) {
    const next = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*]+)\*|\[([^[\]]+)\]\(([^()\s]+)\)/.exec(rest);
    if (!next) break;
    found.push(rest.slice(0, next.index));
    if (next[1]) found.push(h("code", {}, next[1]));
    else if (next[2]) found.push(h("b", {}, next[2]));
    else if (next[3]) found.push(h("i", {}, next[3]));
    else found.push(`${next[4]} (${next[5]})`);
    rest = rest.slice(next.index + next[0].length);
  }
  found.push(rest);
  return found;
}
