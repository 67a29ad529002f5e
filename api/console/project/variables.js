// The environment variables of a project. Values are write-only.

import { change, list } from "../api.js";
import { may } from "../caller.js";
import { attempts, fill, h, table, when } from "../dom.js";

export async function variables(container, name, query, signal) {
  const path = `/v1/projects/${encodeURIComponent(name)}/env`;
  const data = await allOf(path, signal);
  const reload = () => variables(container, name, query, signal);
  const errorArea = h("div");
  const attempt = attempts(errorArea, reload);
  const nameField = h("input", { id: "variable", required: true, pattern: "[A-Za-z_][A-Za-z0-9_]*", placeholder: "OPENAI_API_KEY", title: "Letters, digits and _; no digit first" });
  const value = h("textarea", { id: "value", class: "text masked", rows: 1, autocomplete: "off", spellcheck: "false", onkeydown: (event) => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    value.form.requestSubmit();
  } });
  fill(container, table([
    ["Name", (row) => row.name, "code"],
    ["Updated", (row) => when(row.updated_at)],
    ["", (row) => may("deploy", name) && h("button", { class: "danger", "aria-label": `Remove ${row.name}`, onclick: () => {
      if (confirm(`Remove ${row.name}?`)) attempt(() => change("DELETE", `${path}/${encodeURIComponent(row.name)}`), `${row.name} was removed.`);
    } }, "Remove")],
  ], data, "No variables."), may("deploy", name) && h("form", { class: "box", onsubmit: (event) => {
    event.preventDefault();
    attempt(() => change("PUT", `${path}/${encodeURIComponent(nameField.value)}`, { value: oneLine(value.value) }), `${nameField.value} is set.`);
  } }, h("label", { for: "variable" }, "Name"), nameField, h("label", { for: "value" }, "Value (never shown again)"), value,
    h("p", {}, h("button", { class: "main" }, "Set variable")), errorArea));
}

async function allOf(path, signal) {
  const rows = [];
  for (let page = 1; ; page += 1) {
    const { data, pagination } = await list(path, { page, per_page: 100 }, signal);
    rows.push(...data);
    if (!pagination.has_more) return rows;
  }
}

/** Return a value without the line end that a copied line brings along; one of several lines stays as it is. Pure. */
function oneLine(text) {
  return text.replace(/^([^\n]*)\n$/, "$1");
}
