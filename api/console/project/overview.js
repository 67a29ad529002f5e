// The state of a project at a glance: active deployment, last runs, success, durations, tokens, limits.

import { get } from "../api.js";
import { dayChart } from "../chart.js";
import { card, docsLink, errorBox, fill, h, svg, when } from "../dom.js";
import { ago, duration, money } from "../format.js";
import { linkTo } from "../router.js";
import { deploymentBadges, stages } from "../deployment/stages.js";
import { firstSteps } from "./first_steps.js";
import { budgets, limitTable } from "./limits.js";
import { runsNow, runStatistics } from "./statistics.js";

const STRIP_RUNS = 50, STRIP_WIDTH = 600, STRIP_HEIGHT = 60;

/** `deployments` and `runs` are pages of the newest ones. */
export async function overview(container, name, _query, signal, details, deployments, runs) {
  const { active_deployment_id: active, limited } = details;
  const usage = await get(`/v1/projects/${encodeURIComponent(name)}/usage`, {}, signal);
  const current = active ? await get(`/v1/deployments/${encodeURIComponent(active)}`, {}, signal) : null;
  const last = deployments.data[0];
  const newest = last && last.id !== active ? await get(`/v1/deployments/${encodeURIComponent(last.id)}`, {}, signal) : null;
  const isNew = !active && runs.data.length === 0;
  fill(container,
    firstSteps(details, current, last, runs.data.filter((run) => !run.smoke).length),
    !isNew && h("div", { class: "cards" }, activeCard(current), ...runCards(runs.data, usage)),
    newest && h("section", {}, h("h2", {}, "Newest deployment"), h("p", { class: "row" },
      h("a", { href: linkTo("deployments", newest.id) }, newest.id), deploymentBadges(newest), newest.message), stages(newest),
      newest.error && errorBox(newest.error.reason, newest.error.message, newest.error.hint, docsLink(newest.error))),
    runs.data.length > 0 && [h("h2", {}, "Last runs"), strip(runs.data.slice(0, STRIP_RUNS).reverse())],
    !isNew && h("div", { class: "charts" }, dayChart("Runs by day", usage.days, [["runs", "runs"]]),
      dayChart("Tokens by day", usage.days, [["prompt_tokens", "in"], ["completion_tokens", "out"]]),
      usage.currency && dayChart("Cost by day", usage.days, [["cost", usage.currency]], (value) => money(value, usage.currency))),
    budgets(usage), h("h2", {}, "Limits"), limited && errorBox(limited.reason, limited.message), limitTable(usage.limits ?? []));
}

function activeCard(current) {
  if (!current) return card("Active deployment", "none yet");
  const link = h("a", { href: linkTo("deployments", current.id) }, current.message || current.id);
  return card("Active deployment", link, [current.git_sha ? h("code", {}, current.git_sha.slice(0, 12)) : current.id, current.activated_at && [" since ", when(current.activated_at)]]);
}

function runCards(runs, usage) {
  const { ended, share, median, p95 } = runStatistics(runs), { total } = usage;
  const { running, waiting } = runsNow(usage.limits ?? []);
  return [
    card("Success", share === null ? "–" : `${Math.round(share * 1000) / 10} %`, `of the last ${ended} ended runs`),
    card("Median duration", duration(median), `95 % within ${duration(p95)}`),
    card("Now", `${running} running`, `${waiting} waiting`),
    card("Tokens in 30 days", (total.prompt_tokens + total.completion_tokens).toLocaleString(),
      money(total.cost, usage.currency)),
  ];
}

/** Bars of runs, oldest first: as high as they took long, coloured by status, each a link. */
function strip(runs) {
  const longest = Math.max(1, ...runs.map((run) => run.duration_ms ?? 0)), step = STRIP_WIDTH / STRIP_RUNS;
  const chart = svg("svg", { class: "strip", viewBox: `0 0 ${STRIP_WIDTH} ${STRIP_HEIGHT}`, role: "group", "aria-label": "Durations of the last runs" });
  runs.forEach((run, index) => {
    const height = 6 + ((run.duration_ms ?? 0) / longest) * (STRIP_HEIGHT - 6);
    const text = `${run.id}, ${run.status}, ${duration(run.duration_ms)}, ${ago(run.created_at)}`;
    chart.append(svg("a", { href: linkTo("runs", run.id), "aria-label": text }, svg("title", {}, text),
      svg("rect", { class: "column", x: index * step, y: 0, width: step, height: STRIP_HEIGHT }),
      svg("rect", { class: `mark ${run.status}`, x: index * step + 1, y: STRIP_HEIGHT - height, width: step - 2, height, rx: 2 })));
  });
  return chart;
}
