// A project: its state at a glance, deployments, runs, schedules, variables, notifications and usage.

import { get, list } from "../api.js";
import { definitionList, fill, h, errorBox, pause, table, when } from "../dom.js";
import { queryText } from "../format.js";
import { deploymentBadges, smokeBadge } from "../deployment/stages.js";
import { overview } from "./overview.js";
import { pages, ready } from "./projects.js";
import { linkTo, setQuery } from "../router.js";
import { requirementsForm } from "./requirements.js";
import { notifications } from "./notifications.js";
import { newRunSection } from "../run/new_run.js";
import { statusChoice, table as runTable } from "../run/runs.js";
import { schedules } from "./schedules.js";
import { usage } from "./usage.js";
import { variables } from "./variables.js";

const REFRESH_MS = 3000;
const TABS = [["overview", "Overview"], ["deployments", "Deployments"], ["runs", "Runs"], ["schedules", "Schedules"], ["variables", "Variables"], ["notifications", "Notifications"], ["usage", "Usage"]];

export async function project(container, { name, tab = "overview" }, query, signal) {
  document.title = `${name} · Crewyard`;
  const details = await get(`/v1/projects/${encodeURIComponent(name)}`, {}, signal);
  await show(container, name, tab, query, signal, details);
  if (tab === "overview" && !details.active_deployment_id) await followFirst(container, name, query, signal);
}

/** Show the overview again whenever the project or its newest deployment has changed, until one is active. */
async function followFirst(container, name, query, signal) {
  container.removeAttribute("aria-busy");
  const path = `/v1/projects/${encodeURIComponent(name)}`;
  for (let shown = null, active = null; !active;) {
    await pause(REFRESH_MS);
    if (signal.aborted) return;
    const found = !document.hidden && await Promise.all([get(path, {}, signal), list("/v1/deployments", { project: name, per_page: 1 }, signal)]).catch(() => null);
    const text = found && JSON.stringify(found);
    if (!found || text === shown) continue;
    const next = h("div");
    await show(next, name, "overview", query, signal, found[0]);
    fill(container, ...next.childNodes);
    [shown, active] = [text, found[0].active_deployment_id];
  }
}

async function show(container, name, tab, query, signal, details) {
  const body = h("div");
  const active = details.active_deployment_id;
  fill(container, h("div", { class: "spread" }, h("h1", {}, name),
    active && tab !== "runs" && h("a", { class: "button", href: `${linkTo("projects", name, "runs")}?new=yes` }, "New run")),
    definitionList([["Namespace", details.namespace], ["Source", ready(details)], ["Plan", details.plan],
      ["Active deployment", active ? h("a", { href: linkTo("deployments", active) }, active) : h("span", { class: "quiet" }, "none yet")]]),
    details.ready.status === false && errorBox(details.ready.reason, details.ready.message),
    h("nav", { class: "tabs", "aria-label": "Project" }, TABS.map(([id, title]) =>
      h("a", { href: linkTo("projects", name, id), "aria-current": id === tab ? "page" : null }, title))), body);
  const views = { overview, deployments, runs, schedules, variables, notifications, usage };
  await (views[tab] ?? overview)(body, name, query, signal, details);
}

async function deployments(container, name, query, signal, details) {
  const { data, pagination } = await list("/v1/deployments", { project: name, page: query.page, per_page: 30 }, signal);
  fill(container, table([
    ["Deployment", (row) => h("a", { href: linkTo("deployments", row.id) }, row.id), "code"],
    ["Status", (row) => [deploymentBadges(row), row.smoke_run && smokeBadge(row)]],
    ["Message", (row) => row.message],
    ["Created", (row) => when(row.created_at)],
    ["Active since", (row) => row.activated_at && when(row.activated_at), "wide"],
  ], data, "No deployments yet. Push a commit, or run: crewyard deploy"), pages(pagination, linkTo("projects", name, "deployments")),
  requirementsForm(name, details));
}

async function runs(container, name, query, signal, { active_deployment_id: active }) {
  const { data, pagination } = await list("/v1/runs", { project: name, status: query.status, page: query.page, per_page: 30 }, signal);
  const status = statusChoice(query.status, () => setQuery({ status: status.value }));
  fill(container, active && newRunSection("New run", { target: name, deployment: active }, query.new === "yes"), h("p", { class: "row" }, status), runTable(data, true),
    pages(pagination, linkTo("projects", name, "runs") + queryText({ status: query.status })));
}
