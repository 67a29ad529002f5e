// The audit log: the changes made through the API, filtered by project, actor and day.

import { list } from "../api.js";
import { fill, h, table } from "../dom.js";
import { queryText } from "../format.js";
import { pages } from "../project/projects.js";
import { setQuery } from "../router.js";

const DAY_MS = 86400000;
const LABELS = { project: "Project", actor: "Actor", from: "From (UTC)", to: "to" };

export async function audit(container, query, signal) {
  const { project, actor, from, to, page } = query, filters = { project, actor, from, to };
  const { data, pagination } = await list("/v1/audit", { ...timesOf(filters), page, per_page: 50 }, signal);
  const inputs = Object.keys(LABELS).map((name) => [name, h("input", {
    id: `audit-${name}`, value: query[name] ?? "", type: name === "from" || name === "to" ? "date" : "search", placeholder: name === "actor" ? "key:…" : null })]);
  fill(container, h("form", { class: "row", onsubmit: (event) => {
    event.preventDefault();
    setQuery(Object.fromEntries(inputs.map(([name, input]) => [name, input.value.trim()])));
  } }, inputs.map(([name, input]) => [h("label", { for: input.id }, LABELS[name]), input]), h("button", {}, "Filter")), table([
    ["Time", ({ time }) => h("time", { datetime: time, title: time }, new Date(time).toLocaleString())],
    ["Actor", (row) => row.actor, "code"],
    ["Call", (row) => `${row.method} ${row.path}`, "code"],
    ["Project", (row) => row.project, "wide"],
    ["Object", (row) => row.target, "code"],
    ["Outcome", (row) => (row.outcome === "failed" ? h("span", { class: "failed" }, `failed: ${row.code}`) : row.outcome)],
    ["Address", (row) => row.remote, "code wide"],
    ["Number", (row) => String(row.number), "number wide"],
  ], data, "No changes."), pages(pagination, `#/installation/audit${queryText(filters)}`));
}

/** Return the filters of the API for those of the page, whose days are both included. Pure. */
export function timesOf({ project, actor, from, to }) {
  const end = to && new Date(Date.parse(`${to}T00:00:00Z`) + DAY_MS).toISOString();
  return { project, actor, from: from && `${from}T00:00:00Z`, to: end };
}
