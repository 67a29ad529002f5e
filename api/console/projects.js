// All projects, and making one.

import { change, list } from "./api.js";
import { fill, h, problem, say, table } from "./dom.js";
import { ago } from "./format.js";
import { to } from "./router.js";

export async function projects(place, _parameters, query, signal) {
  document.title = "Projects · Crewyard";
  const page = Number(query.page ?? 1);
  const { data, pagination } = await list("/v1/projects", { page, per_page: 50 }, signal);
  fill(place, h("h1", {}, "Projects"), table([
    ["Name", (row) => h("a", { href: to("projects", row.name) }, row.name)],
    ["Plan", (row) => row.plan],
    ["Active deployment", (row) => row.active_deployment_id
      ? h("a", { href: to("deployments", row.active_deployment_id) }, row.active_deployment_id) : h("span", { class: "quiet" }, "none yet"), "code"],
    ["Source", (row) => ready(row)],
    ["Created", (row) => ago(row.created_at)],
  ], data, "There is no project yet. Make one below."), pages(pagination, "#/projects"), creation());
}

/** Whether a project's source could be read. */
export function ready(row) {
  const url = row.source?.git?.url;
  if (!url) return h("span", { class: "quiet" }, "uploads");
  return row.ready.status === false ? h("span", { class: "failed", title: row.ready.message }, row.ready.reason) : url;
}

/** Links to the pages beside this one. */
export function pages({ page, has_more: more, total }, address) {
  if (page === 1 && !more) return null;
  const join = address.includes("?") ? "&" : "?";
  return h("p", { class: "row" }, page > 1 && h("a", { href: `${address}${join}page=${page - 1}` }, "← newer"),
    h("span", { class: "quiet" }, `page ${page}, ${total} in all`), more && h("a", { href: `${address}${join}page=${page + 1}` }, "older →"));
}

function creation() {
  const said = h("div");
  const name = h("input", { id: "name", required: true, pattern: "[a-z0-9]([-a-z0-9]*[a-z0-9])?", maxlength: 52, placeholder: "research" });
  const url = h("input", { id: "url", type: "url", placeholder: "https://git.example.com/team/crew.git", size: 40 });
  return h("form", { class: "box", onsubmit: async (event) => {
    event.preventDefault();
    try {
      const made = await change("POST", "/v1/projects", { name: name.value, ...(url.value ? { source: { git: { url: url.value } } } : {}) });
      say(`The project ${made.name} is made.`);
      location.hash = to("projects", made.name);
    } catch (error) {
      fill(said, problem(error.message, error.details?.field));
    }
  } }, h("h2", {}, "New project"), h("label", { for: "name" }, "Name"), name,
    h("label", { for: "url" }, "Git repository whose commits are deployed (optional)"), url,
    h("p", {}, h("button", { class: "main" }, "Create project")), said);
}
