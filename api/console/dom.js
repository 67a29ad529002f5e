// Elements, made of text only: nothing that the service or a crew says is ever read as HTML.

/** An element with properties (`on…` are listeners, `class`, `data`, attributes) and children (texts, elements, lists). */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "selected") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An element of SVG. */
export function svg(tag, properties = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** Puts other children into an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Says something at the edge of the page, also to screen readers. */
export function say(text) {
  const place = document.getElementById("said");
  place.textContent = text;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { place.textContent = ""; }, 6000);
}

/** A table of rows; `columns` are [heading, row → child, class?]. */
export function table(columns, rows, none) {
  if (rows.length === 0) return h("p", { class: "quiet" }, none);
  return h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, columns.map(([title]) => h("th", { scope: "col" }, title)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, columns.map(([, cell, kind]) => h("td", { class: kind }, cell(row) ?? "–")))))));
}

/** Facts about one thing: [[name, child]]. */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** A word for a status. */
export function chip(status) {
  return h("span", { class: `chip ${status}` }, status);
}

/** A link to the documentation of an error's reason, where the installation has one. */
export function readOn(error) {
  return error.docs_url && h("a", { href: error.docs_url, target: "_blank", rel: "noopener noreferrer" }, "What this means");
}

/** What went wrong, in a box. */
export function problem(title, ...lines) {
  return h("div", { class: "error", role: "alert" }, h("b", {}, title), lines.filter(Boolean).map((line) => h("div", {}, line)));
}
