// The daily usage of a project as bar charts, and its tokens by model.

import { get } from "../api.js";
import { dayChart } from "../chart.js";
import { definitionList, fill, h, table } from "../dom.js";
import { duration, money, size } from "../format.js";
import { budgets, limitTable } from "./limits.js";

export async function usage(container, name, _query, signal) {
  const report = await get(`/v1/projects/${encodeURIComponent(name)}/usage`, {}, signal);
  const { total } = report;
  fill(container, definitionList([
    ["Period", `${report.from} to ${report.to} (UTC)`],
    ["Runs", total.runs.toLocaleString()],
    ["Run time", duration(total.run_seconds * 1000)],
    ["Build time", duration(total.build_seconds * 1000)],
    ["Artifacts", size(total.artifact_bytes)],
    ["Tokens", `${total.prompt_tokens.toLocaleString()} in, ${total.completion_tokens.toLocaleString()} out`],
    ["Cost", money(total.cost, report.currency)],
  ]), h("div", { class: "charts" }, dayChart("Runs by day", report.days, [["runs", "runs"]]),
    dayChart("Run seconds by day", report.days, [["run_seconds", "run seconds"]]),
    dayChart("Build seconds by day", report.days, [["build_seconds", "build seconds"]]),
    dayChart("Tokens by day", report.days, [["prompt_tokens", "in"], ["completion_tokens", "out"]]),
    report.currency && dayChart("Cost by day", report.days, [["cost", report.currency]], (value) => money(value, report.currency))),
  modelTable(report), budgets(report), h("h2", {}, "Limits"), limitTable(report.limits ?? []));
}

/** Create the table of tokens and cost by model; null without a known model. */
export function modelTable({ models, currency }) {
  const rows = Object.entries(models).map(([name, used]) => ({ name, ...used }));
  if (!rows.length) return null;
  return [h("h2", {}, "Models"), table([
    ["Model", ({ name }) => name, "code"],
    ["In", (row) => row.prompt_tokens.toLocaleString(), "number"],
    ["Out", (row) => row.completion_tokens.toLocaleString(), "number"],
    ...(currency ? [["Cost", (row) => money(row.cost, currency), "number"]] : []),
  ], rows, "")];
}
