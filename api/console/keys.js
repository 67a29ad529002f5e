// Settings → API keys: list, create (shown once), revoke.

import { change, list } from "./api.js";
import { fill, h, problem, say, table } from "./dom.js";
import { ago } from "./format.js";
import { pages } from "./projects.js";

const SCOPES = ["read", "run", "deploy", "admin"];

export async function keys(place, parameters, query, signal, fresh = null) {
  document.title = "API keys · Crewyard";
  const { data, pagination } = await list("/v1/api-keys", { page: query.page, per_page: 100 }, signal);
  const again = (key) => keys(place, parameters, query, signal, key);
  const made = h("div", { id: "newkey" }, fresh && shown(fresh));
  fill(place, h("h1", {}, "API keys"), made, table([
    ["Name", (row) => row.name],
    ["Id", (row) => row.id, "code"],
    ["Scopes", (row) => row.scopes.join(", ")],
    ["Projects", (row) => row.projects?.join(", ") ?? "all"],
    ["Last used", (row) => (row.last_used_at ? ago(row.last_used_at) : "never")],
    ["Expires", (row) => row.expires_at ?? "never"],
    ["", (row) => h("button", { class: "danger", "aria-label": `Revoke ${row.name}`, onclick: async () => {
      if (!confirm(`Revoke ${row.name}? What uses it stops working at once.`)) return;
      try {
        await change("DELETE", `/v1/api-keys/${encodeURIComponent(row.id)}`);
        say(`${row.name} is revoked.`);
        await again();
      } catch (error) {
        say(error.message);
      }
    } }, "Revoke")],
  ], data, "There are no API keys but the installation's own."), pages(pagination, "#/settings/api-keys"), creation(made, again));
}

function creation(made, again) {
  const said = h("div");
  const name = h("input", { id: "keyname", required: true, maxlength: 100, placeholder: "CI of the crew" });
  const projects = h("input", { id: "keyprojects", placeholder: "all", size: 40 });
  const scopes = SCOPES.map((scope) => [scope, h("input", { type: "checkbox", checked: scope === "read" })]);
  const button = h("button", { class: "main" }, "Create API key");
  return h("form", { class: "box", onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    const only = projects.value.split(/[\s,]+/).filter(Boolean);
    try {
      const key = await change("POST", "/v1/api-keys", {
        name: name.value, scopes: scopes.filter(([, box]) => box.checked).map(([scope]) => scope), ...(only.length ? { projects: only } : {}) });
      // First of all: the list may fail, and the key is told this once.
      fill(made, shown(key));
      await again(key);
    } catch (error) {
      fill(said, problem(error.message, error.details?.field));
    } finally {
      button.disabled = false;
    }
  } }, h("h2", {}, "Create API key"), h("label", { for: "keyname" }, "Name"), name,
    h("label", {}, "Scopes"), h("div", { class: "row" }, scopes.map(([scope, box]) => h("label", { class: "check" }, box, scope))),
    h("label", { for: "keyprojects" }, "Only for these projects"), projects,
    h("p", {}, button), said);
}

function shown(key) {
  return h("div", { class: "box", role: "alert" }, h("b", {}, `${key.name}: keep the key now, it is not shown again.`),
    h("p", { class: "secret" }, key.key),
    // Browsers give the clipboard to encrypted pages alone.
    navigator.clipboard && h("button", { onclick: async () => {
      await navigator.clipboard.writeText(key.key);
      say("Copied.");
    } }, "Copy"));
}
