// The list of projects, and the form that creates one.

import { change, list } from "../api.js";
import { fill, h, errorBox, notify, table, when } from "../dom.js";
import { walk } from "./first_steps.js";
import { requirementsField } from "./requirements.js";
import { keepFresh } from "../refresh.js";
import { linkTo } from "../router.js";

// Browsers compile a pattern with the flag v, which wants the hyphen escaped.
const NAME_PATTERN = "[a-z0-9]([\\-a-z0-9]*[a-z0-9])?", NAME_RULE = "Lower-case letters, digits and hyphens, no hyphen first or last";

export async function projects(container, _parameters, query, signal) {
  document.title = "Projects · Crewyard";
  const page = Number(query.page ?? 1);
  const area = h("div");
  fill(container, h("h1", {}, "Projects"), area, createForm());
  await keepFresh(area, signal, () => list("/v1/projects", { page, per_page: 50 }, signal), (found) => listed(found, page));
}

function listed({ data, pagination }, page) {
  const first = data.length === 0 && page === 1 && h("section", { class: "box" }, h("h2", {}, "From here to a first result"), walk(0),
    h("p", {}, "Name a project, and give the URL of the git repository of a crew. Or start at a terminal:"),
    h("pre", { tabindex: 0 }, "crewyard init tides\ncrewyard projects create tides\ncrewyard deploy tides -p tides"));
  return [first || table([
    ["Name", (row) => h("a", { href: linkTo("projects", row.name) }, row.name)],
    ...(data.some((row) => row.namespace) ? [["Namespace", (row) => row.namespace, "wide"]] : []),
    ["Plan", (row) => row.plan, "wide"],
    ["Active deployment", (row) => row.active_deployment_id
      ? h("a", { href: linkTo("deployments", row.active_deployment_id) }, row.active_deployment_id) : h("span", { class: "quiet" }, "none yet"), "code"],
    ["Source", (row) => ready(row), "code"],
    ["Created", (row) => when(row.created_at), "wide"],
  ], data, "No projects."), pages(pagination, "#/projects")];
}

/** Create the source of a project: its URL, or the reason why it is not ready. */
export function ready(row) {
  const url = row.source?.git?.url;
  if (!url) return h("span", { class: "quiet" }, "uploads");
  return row.ready.status === false ? h("span", { class: "failed", title: row.ready.message }, row.ready.reason) : url;
}

/** Create links to the previous and next page. */
export function pages({ page, has_more: hasMore, total }, address) {
  if (page === 1 && !hasMore) return null;
  const join = address.includes("?") ? "&" : "?";
  return h("p", { class: "row" }, page > 1 && h("a", { href: `${address}${join}page=${page - 1}` }, "← newer"),
    h("span", { class: "quiet" }, `page ${page}, ${total} in total`), hasMore && h("a", { href: `${address}${join}page=${page + 1}` }, "older →"));
}

function createForm() {
  const errorArea = h("div");
  const name = h("input", { id: "name", required: true, pattern: NAME_PATTERN, title: NAME_RULE, maxlength: 52, placeholder: "research" });
  const url = h("input", { id: "url", type: "url", placeholder: "https://git.example.com/team/crew.git", size: 40 });
  const namespace = h("input", { id: "namespace", pattern: NAME_PATTERN, title: NAME_RULE, maxlength: 63, placeholder: "its namespace" });
  const packages = requirementsField();
  return h("form", { class: "box", onsubmit: async (event) => {
    event.preventDefault();
    try {
      const requirements = packages.read();
      const project = await change("POST", "/v1/projects", { name: name.value, ...(url.value ? { source: { git: { url: url.value } } } : {}),
        ...(namespace.value ? { namespace: namespace.value } : {}), ...(requirements.length > 0 ? { build: { requirements } } : {}) });
      notify(`Project ${project.name} was created.`);
      location.hash = linkTo("projects", project.name);
    } catch (error) {
      fill(errorArea, errorBox(error.message, error.details?.field));
    }
  } }, h("h2", {}, "New project"), h("label", { for: "name" }, "Name"), name,
    h("label", { for: "url" }, "Git repository whose commits are deployed (optional)"), url,
    h("label", { for: "namespace" }, "Team (optional)"), namespace, packages.elements,
    h("p", {}, h("button", { class: "main" }, "Create project")), errorArea);
}
