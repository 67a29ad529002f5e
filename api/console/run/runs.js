// The list of runs of all projects, with filters.

import { list } from "../api.js";
import { statusBadge, fill, h, table as rows, when } from "../dom.js";
import { duration, money, queryText } from "../format.js";
import { pages } from "../project/projects.js";
import { keepFresh } from "../refresh.js";
import { setQuery, linkTo } from "../router.js";

const STATUSES = ["", "pending", "running", "succeeded", "failed", "canceled"];

/** Create a table of runs; those of a single project need no column of it. */
export function table(data, ofProject = false) {
  return rows([
    ["Run", (row) => h("a", { href: linkTo("runs", row.id) }, row.id), "code"],
    ["Status", (row) => [statusBadge(row.status), row.smoke && h("span", { class: "chip", title: "The smoke run of its deployment" }, "smoke")]],
    ...(ofProject ? [] : [["Project", (row) => row.project && h("a", { href: linkTo("projects", row.project) }, row.project), "wide"]]),
    ["Duration", (row) => duration(row.duration_ms), "number"],
    ["Tokens", (row) => row.usage && tokensOf(row.usage).toLocaleString(), "number wide"],
    ...(data.some(({ usage }) => usage?.currency) ? [["Cost", ({ usage }) => usage && money(usage.cost, usage.currency), "number wide"]] : []),
    ["Created", (row) => when(row.created_at)],
  ], data, "No runs.");
}

/** Return the tokens of a usage, those of prompts and of answers together. */
export function tokensOf({ prompt_tokens: prompt, completion_tokens: completion }) {
  return prompt + completion;
}

/** Create the choice of a status by which runs are filtered. */
export function statusChoice(chosen, onchange) {
  return h("select", { id: "status", "aria-label": "Status", onchange },
    STATUSES.map((name) => h("option", { value: name, selected: name === (chosen ?? "") }, name || "any status")));
}

export async function runs(container, _parameters, query, signal) {
  document.title = "Runs · Crewyard";
  const project = h("input", { id: "project", value: query.project ?? "", placeholder: "project", "aria-label": "Project" });
  const status = statusChoice(query.status, () => filter());
  const label = h("input", { id: "label", value: query.label ?? "", placeholder: "label, such as team=tides", "aria-label": "Label" });
  const filter = () => setQuery({ project: project.value.trim(), status: status.value, label: label.value.trim() });
  const area = h("div"), chosen = { project: query.project, status: query.status, label: query.label };
  fill(container, h("h1", {}, "Runs"), h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); filter(); } },
    project, status, label, h("button", {}, "Filter")), area);
  await keepFresh(area, signal, () => list("/v1/runs", { ...query, per_page: 50 }, signal),
    ({ data, pagination }) => [table(data), pages(pagination, `#/runs${queryText(chosen)}`)]);
}
