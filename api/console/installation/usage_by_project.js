// The usage of each project in a range of days.

import { list } from "../api.js";
import { fill, h, table } from "../dom.js";
import { money, queryText, size } from "../format.js";
import { pages } from "../project/projects.js";
import { linkTo, setQuery } from "../router.js";

const PER_PAGE = 100;

export async function usageByProject(container, query, signal) {
  const { data, pagination } = await list("/v1/usage", { from: query.from, to: query.to, page: query.page, per_page: PER_PAGE }, signal);
  const from = h("input", { id: "from", type: "date", value: query.from ?? data[0]?.from ?? "" });
  const to = h("input", { id: "to", type: "date", value: query.to ?? data[0]?.to ?? "" });
  const number = (field) => (row) => row[field].toLocaleString();
  fill(container, h("form", { class: "row", onsubmit: (event) => {
    event.preventDefault();
    setQuery({ from: from.value, to: to.value });
  } }, h("label", { for: "from" }, "From (UTC)"), from, h("label", { for: "to" }, "to"), to, h("button", {}, "Show")), table([
    ["Project", (row) => h("a", { href: linkTo("projects", row.project, "usage") }, row.project)],
    ["Runs", number("runs"), "number"],
    ["Run seconds", (row) => Math.round(row.run_seconds).toLocaleString(), "number wide"],
    ["Build seconds", (row) => Math.round(row.build_seconds).toLocaleString(), "number wide"],
    ["Artifacts", (row) => size(row.artifact_bytes), "number wide"],
    ["Tokens in", number("prompt_tokens"), "number"],
    ["Tokens out", number("completion_tokens"), "number"],
    ...(data.some((row) => row.cost !== null) ? [["Cost", (row) => money(row.cost, row.currency), "number"]] : []),
  ], byUse(data), "No projects."), pages(pagination, `#/installation/usage${queryText({ from: query.from, to: query.to })}`));
}

/** Return the projects of a page, those with the highest cost, then the longest runs, first. Pure. */
export function byUse(rows) {
  return [...rows].sort((a, b) => (b.cost ?? 0) - (a.cost ?? 0) || b.run_seconds - a.run_seconds);
}
