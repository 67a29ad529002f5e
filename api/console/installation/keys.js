// API keys: list, create (shown once), revoke.

import { change, list } from "../api.js";
import { fill, h, errorBox, localTime, notify, table, when } from "../dom.js";
import { until } from "../format.js";
import { pages } from "../project/projects.js";

const SCOPES = ["read", "run", "preview", "deploy", "admin"];

export async function keys(container, query, signal, createdKey = null) {
  const { data, pagination } = await list("/v1/api-keys", { page: query.page, per_page: 100 }, signal);
  const reload = (key) => keys(container, query, signal, key);
  const keyBox = h("div", { id: "newkey" }, createdKey && newKeyBox(createdKey));
  fill(container, keyBox, table([
    ["Name", (row) => row.name],
    ["Id", (row) => row.id, "code"],
    ["Scopes", (row) => row.scopes.join(", ")],
    ["Projects", (row) => row.projects?.join(", ") ?? "all"],
    ["Last used", (row) => (row.last_used_at ? when(row.last_used_at) : "never")],
    ["Expires", (row) => (row.expires_at ? h("time", { datetime: row.expires_at, title: localTime(row.expires_at) }, until(row.expires_at)) : "never")],
    ["", (row) => h("button", { class: "danger", "aria-label": `Revoke ${row.name}`, onclick: async () => {
      if (!confirm(`Revoke ${row.name}? Clients that use it stop working immediately.`)) return;
      try {
        await change("DELETE", `/v1/api-keys/${encodeURIComponent(row.id)}`);
        notify(`${row.name} was revoked.`);
        // A key that was just created is not shown again: revoking the one that it replaces keeps it.
        await reload(row.id === createdKey?.id ? null : createdKey);
      } catch (error) {
        notify(error.message);
      }
    } }, "Revoke")],
  ], data, "No API keys besides those set by the installation."), pages(pagination, "#/installation/api-keys"), createForm(keyBox, reload));
}

function createForm(keyBox, reload) {
  const errorArea = h("div");
  const name = h("input", { id: "keyname", required: true, maxlength: 100, placeholder: "CI of the crew" });
  const projects = h("input", { id: "keyprojects", placeholder: "all", size: 40 });
  const expires = h("input", { id: "keyexpires", type: "date" });
  const scopes = SCOPES.map((scope) => [scope, h("input", { type: "checkbox", checked: scope === "read" })]);
  const button = h("button", { class: "main" }, "Create API Key");
  return h("form", { class: "box", onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    const projectNames = projects.value.split(/[\s,]+/).filter(Boolean);
    try {
      const key = await change("POST", "/v1/api-keys", {
        name: name.value, ...(expires.value ? { expires_at: `${expires.value}T00:00:00Z` } : {}), scopes: scopes.filter(([, box]) => box.checked).map(([scope]) => scope), ...(projectNames.length ? { projects: projectNames } : {}) });
      // Show the key before reloading the list, which may fail: the API returns the key only once.
      fill(keyBox, newKeyBox(key));
      await reload(key);
    } catch (error) {
      fill(errorArea, errorBox(error.message, error.details?.field));
    } finally {
      button.disabled = false;
    }
  } }, h("h2", {}, "Create API Key"), h("label", { for: "keyname" }, "Name"), name,
    h("label", {}, "Scopes"), h("div", { class: "row" }, scopes.map(([scope, box]) => h("label", { class: "check" }, box, scope))),
    h("label", { for: "keyprojects" }, "Only for these projects"), projects,
    h("label", { for: "keyexpires" }, "Expires at the start of this day, UTC (optional)"), expires,
    h("p", {}, button), errorArea);
}

function newKeyBox(key) {
  return h("div", { class: "box", role: "alert" }, h("b", {}, `${key.name}: copy the key now, it is not shown again.`),
    h("p", { class: "secret" }, key.key),
    // The clipboard is available over HTTPS only.
    navigator.clipboard && h("button", { onclick: async () => {
      await navigator.clipboard.writeText(key.key);
      notify("Copied.");
    } }, "Copy"));
}
