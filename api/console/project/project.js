// A project: its state at a glance, deployments, runs, schedules, variables and usage.

import { get, list } from "../api.js";
import { statusBadge, fill, h, errorBox, table } from "../dom.js";
import { ago } from "../format.js";
import { overview } from "./overview.js";
import { pages, ready } from "./projects.js";
import { linkTo } from "../router.js";
import { newRun } from "../run/new_run.js";
import { table as runTable } from "../run/runs.js";
import { schedules } from "./schedules.js";
import { usage } from "./usage.js";
import { variables } from "./variables.js";

const TABS = [["overview", "Overview"], ["deployments", "Deployments"], ["runs", "Runs"], ["schedules", "Schedules"], ["variables", "Variables"], ["usage", "Usage"]];

export async function project(container, { name, tab = "overview" }, query, signal) {
  document.title = `${name} · Crewyard`;
  const details = await get(`/v1/projects/${encodeURIComponent(name)}`, {}, signal);
  const body = h("div");
  const active = details.active_deployment_id;
  fill(container, h("h1", {}, name), h("p", { class: "row quiet" }, h("span", {}, details.plan), "·", h("span", {}, ready(details)), "·",
    active ? h("a", { href: linkTo("deployments", active) }, active) : "no active deployment yet"),
    details.ready.status === false && errorBox(details.ready.reason, details.ready.message),
    h("nav", { class: "tabs", "aria-label": "Project" }, TABS.map(([id, title]) =>
      h("a", { href: linkTo("projects", name, id), "aria-current": id === tab ? "page" : null }, title))), body);
  const views = { overview, deployments, runs, schedules, variables, usage };
  await (views[tab] ?? overview)(body, name, query, signal, active);
}

async function deployments(container, name, query, signal) {
  const { data, pagination } = await list("/v1/deployments", { project: name, page: query.page, per_page: 30 }, signal);
  fill(container, table([
    ["Deployment", (row) => h("a", { href: linkTo("deployments", row.id) }, row.id), "code"],
    ["Status", (row) => statusBadge(row.status)],
    ["Message", (row) => row.message],
    ["Created", (row) => ago(row.created_at)],
    ["Active since", (row) => (row.activated_at ? ago(row.activated_at) : null)],
  ], data, "No deployments yet. Push a commit, or run: crewyard deploy"), pages(pagination, linkTo("projects", name, "deployments")));
}

async function runs(container, name, query, signal, active) {
  const { data, pagination } = await list("/v1/runs", { project: name, status: query.status, page: query.page, per_page: 30 }, signal);
  fill(container, active ? newRun(name) : null, runTable(data), pages(pagination, linkTo("projects", name, "runs")));
}
