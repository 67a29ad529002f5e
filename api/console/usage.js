// What a project used, by day, as bars.

import { get } from "./api.js";
import { facts, fill, h, svg } from "./dom.js";
import { size } from "./format.js";

const WIDTH = 900, HEIGHT = 140, FOOT = 16;

export async function usage(place, name, _query, signal) {
  const found = await get(`/v1/projects/${encodeURIComponent(name)}/usage`, {}, signal);
  const { total } = found;
  fill(place, facts([
    ["From, to", `${found.from}, ${found.to} (UTC)`],
    ["Runs", String(total.runs)],
    ["Run time", `${Math.round(total.run_seconds)} s`],
    ["Build time", `${Math.round(total.build_seconds)} s`],
    ["Artifacts", size(total.artifact_bytes)],
    ["Tokens", `${total.prompt_tokens} in, ${total.completion_tokens} out`],
    ["Cost", total.cost === null ? null : `${total.cost.toFixed(2)} ${found.currency}`],
  ]), h("h2", {}, "Runs by day"), bars(found.days, "runs"), h("h2", {}, "Seconds of runs by day"), bars(found.days, "run_seconds"));
}

function bars(days, what) {
  const most = Math.max(1, ...days.map((day) => day[what]));
  const step = WIDTH / Math.max(1, days.length), high = HEIGHT - FOOT;
  const chart = svg("svg", { class: "bars", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", preserveAspectRatio: "none",
    "aria-label": `${what}: ${days.filter((day) => day[what]).map((day) => `${day.date} ${Math.round(day[what])}`).join(", ") || "none"}` });
  days.forEach((day, index) => {
    const tall = (day[what] / most) * high;
    chart.append(svg("rect", { x: index * step + 1, y: high - tall, width: Math.max(1, step - 2), height: tall },
      svg("title", {}, `${day.date}: ${Math.round(day[what] * 10) / 10}`)));
    if (index % Math.ceil(days.length / 6) === 0) chart.append(svg("text", { x: index * step, y: HEIGHT - 3 }, day.date.slice(5)));
  });
  return chart;
}
