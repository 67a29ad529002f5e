// The daily usage of a project as bar charts.

import { get } from "../api.js";
import { dayChart } from "../chart.js";
import { definitionList, fill, h } from "../dom.js";
import { money, size } from "../format.js";
import { budgets, limitTable } from "./limits.js";

export async function usage(container, name, _query, signal) {
  const report = await get(`/v1/projects/${encodeURIComponent(name)}/usage`, {}, signal);
  const { total } = report;
  fill(container, definitionList([
    ["Period", `${report.from}, ${report.to} (UTC)`],
    ["Runs", String(total.runs)],
    ["Run time", `${Math.round(total.run_seconds)} s`],
    ["Build time", `${Math.round(total.build_seconds)} s`],
    ["Artifacts", size(total.artifact_bytes)],
    ["Tokens", `${total.prompt_tokens} in, ${total.completion_tokens} out`],
    ["Cost", money(total.cost, report.currency)],
  ]), h("div", { class: "charts" }, dayChart("Runs by day", report.days, [["runs", "runs"]]),
    dayChart("Run seconds by day", report.days, [["run_seconds", "run seconds"]]),
    dayChart("Build seconds by day", report.days, [["build_seconds", "build seconds"]]),
    dayChart("Tokens by day", report.days, [["prompt_tokens", "in"], ["completion_tokens", "out"]])),
  budgets(report), h("h2", {}, "Limits"), limitTable(report.limits ?? []));
}
