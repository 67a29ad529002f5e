// The daily usage of a project as bar charts.

import { get } from "../api.js";
import { definitionList, fill, h, svg } from "../dom.js";
import { size } from "../format.js";

const WIDTH = 900, HEIGHT = 140, FOOT = 16;

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
    ["Cost", total.cost === null ? null : `${total.cost.toFixed(2)} ${report.currency}`],
  ]), h("h2", {}, "Runs by day"), bars(report.days, "runs"), h("h2", {}, "Run seconds by day"), bars(report.days, "run_seconds"),
  h("h2", {}, "Limits"), definitionList((report.limits ?? []).map((use) => [use.name, limitText(use)])));
}

function limitText({ name, used, limit }) {
  const text = name.endsWith("_bytes") ? size : String;
  return limit === null ? text(used) : `${text(used)} of ${text(limit)}`;
}

function bars(days, measure) {
  const max = Math.max(1, ...days.map((day) => day[measure]));
  const step = WIDTH / Math.max(1, days.length), chartHeight = HEIGHT - FOOT;
  const chart = svg("svg", { class: "bars", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", preserveAspectRatio: "none",
    "aria-label": `${measure}: ${days.filter((day) => day[measure]).map((day) => `${day.date} ${Math.round(day[measure])}`).join(", ") || "none"}` });
  days.forEach((day, index) => {
    const barHeight = (day[measure] / max) * chartHeight;
    chart.append(svg("rect", { x: index * step + 1, y: chartHeight - barHeight, width: Math.max(1, step - 2), height: barHeight },
      svg("title", {}, `${day.date}: ${Math.round(day[measure] * 10) / 10}`)));
    if (index % Math.ceil(days.length / 6) === 0) chart.append(svg("text", { x: index * step, y: HEIGHT - 3 }, day.date.slice(5)));
  });
  return chart;
}
