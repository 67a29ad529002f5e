// Charts of days as SVG, with a text for screen readers.

import { h, svg } from "./dom.js";

const WIDTH = 600, HEIGHT = 100;

/** Create stacked bars of `days`; `series` are [field, title]. */
export function dayChart(title, days, series, format = (value) => Math.round(value).toLocaleString()) {
  const totals = days.map((day) => series.reduce((sum, [field]) => sum + (day[field] ?? 0), 0));
  const max = Math.max(0, ...totals) || 1, step = WIDTH / Math.max(1, days.length);
  const words = days.map((day, index) => totals[index] && `${day.date}: ${textOf(day, series, format)}`).filter(Boolean).join("; ");
  const chart = svg("svg", { class: "bars", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `${title}. ${words || "None in this time."}` });
  days.forEach((day, index) => {
    let top = HEIGHT;
    const group = svg("g", {}, svg("title", {}, `${day.date}: ${textOf(day, series, format)}`));
    // The whole column shows the title, also of a day without a bar.
    group.append(svg("rect", { class: "column", x: index * step, y: 0, width: step, height: HEIGHT }));
    series.forEach(([field], number) => {
      const size = ((day[field] ?? 0) / max) * HEIGHT;
      top -= size;
      group.append(svg("rect", { class: `part-${number}`, x: index * step + 1, y: top, width: Math.max(1, step - 2), height: size }));
    });
    chart.append(group);
  });
  const legend = series.length > 1 && h("span", { class: "legend" }, series.map(([, name], number) => [h("i", { class: `part-${number}`, "aria-hidden": "true" }), name]));
  const sum = totals.reduce((a, b) => a + b, 0);
  return h("figure", { class: "chart" }, h("figcaption", { class: "spread" }, h("b", {}, title), h("span", { class: "quiet" }, legend, `${legend ? " · total " : ""}${format(sum)}`)), chart,
    days.length > 0 && h("div", { class: "spread quiet ticks", "aria-hidden": "true" }, h("span", {}, days[0].date), h("span", {}, days.at(-1).date)));
}

function textOf(day, series, format) {
  return series.map(([field, name]) => (series.length > 1 ? `${format(day[field] ?? 0)} ${name}` : format(day[field] ?? 0))).join(", ");
}
