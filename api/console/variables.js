// A project's environment variables: names come back, values never.

import { change, list } from "./api.js";
import { fill, h, problem, say, table } from "./dom.js";
import { ago } from "./format.js";

export async function variables(place, name, query, signal) {
  const path = `/v1/projects/${encodeURIComponent(name)}/env`;
  const { data } = await list(path, { per_page: 100 }, signal);
  const again = () => variables(place, name, query, signal);
  const said = h("div");
  const attempt = async (work, done) => {
    try {
      await work();
      say(done);
      await again();
    } catch (error) {
      fill(said, problem(error.message, error.details?.field));
    }
  };
  const title = h("input", { id: "variable", required: true, pattern: "[A-Za-z_][A-Za-z0-9_]*", placeholder: "OPENAI_API_KEY" });
  const value = h("input", { id: "value", type: "password", autocomplete: "off" });
  fill(place, table([
    ["Name", (row) => row.name, "code"],
    ["Updated", (row) => ago(row.updated_at)],
    ["", (row) => h("button", { class: "danger", "aria-label": `Remove ${row.name}`, onclick: () => {
      if (confirm(`Remove ${row.name}?`)) attempt(() => change("DELETE", `${path}/${encodeURIComponent(row.name)}`), `${row.name} is removed.`);
    } }, "Remove")],
  ], data, "There are no variables."), h("form", { class: "box", onsubmit: (event) => {
    event.preventDefault();
    attempt(() => change("PUT", `${path}/${encodeURIComponent(title.value)}`, { value: value.value }), `${title.value} is set.`);
  } }, h("label", { for: "variable" }, "Name"), title, h("label", { for: "value" }, "Value; it is never shown again"), value,
    h("p", {}, h("button", { class: "main" }, "Set variable")), said));
}
