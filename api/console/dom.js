// Creates elements from text only: no data of the service or a crew is parsed as HTML.

import { ago } from "./format.js";

/** Create an element with properties (`on…` are listeners, others attributes) and children (texts, elements, lists). */
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

/** Create an SVG element. */
export function svg(tag, properties = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** Replace the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Show a message in the corner of the page; screen readers announce it. */
export function notify(text) {
  const container = document.getElementById("notification");
  container.textContent = text;
  clearTimeout(notify.timer);
  notify.timer = setTimeout(() => { container.textContent = ""; }, 6000);
}

/** Return a function that does `work`, says so and reloads; what goes wrong is shown in the area. */
export function attempts(errorArea, reload) {
  return async (work, doneMessage) => {
    try {
      await work();
      notify(doneMessage);
      await reload();
    } catch (error) {
      fill(errorArea, errorBox(error.message, error.detail ?? error.details?.field));
    }
  };
}

/** Create a button that is disabled once it does `work`; a failure is notified and enables it again. */
export function actionButton(text, work, properties = {}) {
  const button = h("button", { ...properties, onclick: async () => {
    button.disabled = true;
    try {
      await work();
    } catch (failure) {
      notify(failure.message);
      button.disabled = false;
    }
  } }, text);
  return button;
}

/** Return after so many milliseconds. */
export function pause(milliseconds) {
  return new Promise((done) => { setTimeout(done, milliseconds); });
}

/** Create a table of rows; `columns` are [heading, row → child, class?]: code, number, wide (not on a phone). */
export function table(columns, rows, emptyText) {
  if (rows.length === 0) return h("p", { class: "quiet" }, emptyText);
  return h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, columns.map(([title, , kind]) => (title ? h("th", { scope: "col", class: kind === "code" ? null : kind }, title) : h("td"))))),
    h("tbody", {}, rows.map((row) => h("tr", {}, columns.map(([, cell, kind]) => h("td", { class: kind }, cell(row) ?? "–")))))));
}

/** Create a definition list from [[name, child]]. */
export function definitionList(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** Create a card with a title, a value and lines below it. */
export function card(title, value, ...more) {
  return h("div", { class: "card" }, h("div", { class: "quiet" }, title), h("div", { class: "value" }, value), ...more.map((line) => line && h("div", { class: "quiet" }, line)));
}

/** Create the time since a timestamp of the API, which grows; its title is the time itself, with its zone. */
export function when(text) {
  return text ? h("time", { class: "age", datetime: text, title: localTime(text) }, ago(text)) : "–";
}

/** Format a timestamp of the API as a local time with its zone. */
export function localTime(text) {
  return new Date(text).toLocaleString([], { dateStyle: "medium", timeStyle: "long" });
}

/** Write how old each time of the page is now. */
export function refreshAges() {
  for (const element of document.querySelectorAll("time.age")) {
    const text = ago(element.dateTime);
    if (element.textContent !== text) element.textContent = text;
  }
}

/** Create the text why a run or a deployment waits; null if it does not. */
export function waitingSince(cause) {
  return cause ? [[cause.reason, cause.message].filter(Boolean).join(" · "), cause.since && [" · since ", when(cause.since)]] : null;
}

/** Create the badge of a status. */
export function statusBadge(status) {
  return h("span", { class: `chip ${status}` }, status);
}

/** Create a link to the documentation of an error's reason, if the error has one. */
export function docsLink(error) {
  return error.docs_url && h("a", { href: error.docs_url, target: "_blank", rel: "noopener noreferrer" }, "What this means");
}

/** Create an error box. */
export function errorBox(title, ...lines) {
  return h("div", { class: "error", role: "alert" }, h("b", {}, title), lines.filter(Boolean).map((line) => h("div", {}, line)));
}
