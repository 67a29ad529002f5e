// Runs of all projects, with filters.

import { list } from "./api.js";
import { chip, fill, h, table as rows } from "./dom.js";
import { ago, duration } from "./format.js";
import { pages } from "./projects.js";
import { refine, to } from "./router.js";

const STATUSES = ["", "pending", "running", "succeeded", "failed", "canceled"];

/** The table of some runs. */
export function table(data) {
  return rows([
    ["Run", (row) => h("a", { href: to("runs", row.id) }, row.id), "code"],
    ["Status", (row) => chip(row.status)],
    ["Project", (row) => row.project && h("a", { href: to("projects", row.project) }, row.project)],
    ["Took", (row) => duration(row.duration_ms)],
    ["Created", (row) => ago(row.created_at)],
  ], data, "There is no such run.");
}

export async function runs(place, _parameters, query, signal) {
  document.title = "Runs · Crewyard";
  const { data, pagination } = await list("/v1/runs", { ...query, per_page: 50 }, signal);
  const project = h("input", { id: "project", value: query.project ?? "", placeholder: "all", "aria-label": "Project" });
  const status = h("select", { id: "status", "aria-label": "Status", onchange: () => filter() },
    STATUSES.map((word) => h("option", { value: word, selected: word === (query.status ?? "") }, word || "any status")));
  const filter = () => refine({ project: project.value.trim(), status: status.value });
  const given = new URLSearchParams(Object.entries({ project: query.project, status: query.status }).filter(([, value]) => value));
  fill(place, h("h1", {}, "Runs"), h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); filter(); } },
    project, status, h("button", {}, "Filter")), table(data), pages(pagination, `#/runs${given.size ? `?${given}` : ""}`));
}
