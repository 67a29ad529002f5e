// The environment variables of a project. Values are write-only.

import { change, list } from "../api.js";
import { attempts, fill, h, table, when } from "../dom.js";

export async function variables(container, name, query, signal) {
  const path = `/v1/projects/${encodeURIComponent(name)}/env`;
  const { data } = await list(path, { per_page: 100 }, signal);
  const reload = () => variables(container, name, query, signal);
  const errorArea = h("div");
  const attempt = attempts(errorArea, reload);
  const nameField = h("input", { id: "variable", required: true, pattern: "[A-Za-z_][A-Za-z0-9_]*", placeholder: "OPENAI_API_KEY" });
  const value = h("input", { id: "value", type: "password", autocomplete: "off" });
  fill(container, table([
    ["Name", (row) => row.name, "code"],
    ["Updated", (row) => when(row.updated_at)],
    ["", (row) => h("button", { class: "danger", "aria-label": `Remove ${row.name}`, onclick: () => {
      if (confirm(`Remove ${row.name}?`)) attempt(() => change("DELETE", `${path}/${encodeURIComponent(row.name)}`), `${row.name} was removed.`);
    } }, "Remove")],
  ], data, "No variables."), h("form", { class: "box", onsubmit: (event) => {
    event.preventDefault();
    attempt(() => change("PUT", `${path}/${encodeURIComponent(nameField.value)}`, { value: value.value }), `${nameField.value} is set.`);
  } }, h("label", { for: "variable" }, "Name"), nameField, h("label", { for: "value" }, "Value (never shown again)"), value,
    h("p", {}, h("button", { class: "main" }, "Set variable")), errorArea));
}
