// The list of runs of all projects, with filters.

import { list } from "../api.js";
import { statusBadge, fill, h, table as rows } from "../dom.js";
import { ago, duration } from "../format.js";
import { pages } from "../project/projects.js";
import { setQuery, linkTo } from "../router.js";

const STATUSES = ["", "pending", "running", "succeeded", "failed", "canceled"];

/** Create a table of runs. */
export function table(data) {
  return rows([
    ["Run", (row) => h("a", { href: linkTo("runs", row.id) }, row.id), "code"],
    ["Status", (row) => statusBadge(row.status)],
    ["Project", (row) => row.project && h("a", { href: linkTo("projects", row.project) }, row.project)],
    ["Duration", (row) => duration(row.duration_ms)],
    ["Created", (row) => ago(row.created_at)],
  ], data, "No runs.");
}

export async function runs(container, _parameters, query, signal) {
  document.title = "Runs · Crewyard";
  const { data, pagination } = await list("/v1/runs", { ...query, per_page: 50 }, signal);
  const project = h("input", { id: "project", value: query.project ?? "", placeholder: "all", "aria-label": "Project" });
  const status = h("select", { id: "status", "aria-label": "Status", onchange: () => filter() },
    STATUSES.map((name) => h("option", { value: name, selected: name === (query.status ?? "") }, name || "any status")));
  const filter = () => setQuery({ project: project.value.trim(), status: status.value });
  const parameters = new URLSearchParams(Object.entries({ project: query.project, status: query.status }).filter(([, value]) => value));
  fill(container, h("h1", {}, "Runs"), h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); filter(); } },
    project, status, h("button", {}, "Filter")), table(data), pages(pagination, `#/runs${parameters.size ? `?${parameters}` : ""}`));
}
