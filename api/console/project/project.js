// A project: its state at a glance, deployments, runs, schedules, variables, notifications and usage.

import { get, list } from "../api.js";
import { may } from "../caller.js";
import { definitionList, fill, h, errorBox, table, when } from "../dom.js";
import { askErase } from "../erase.js";
import { queryText } from "../format.js";
import { deploymentBadges, smokeBadge } from "../deployment/stages.js";
import { overview } from "./overview.js";
import { pages, ready } from "./projects.js";
import { keepFresh } from "../refresh.js";
import { linkTo, setQuery } from "../router.js";
import { requirementsForm } from "./requirements.js";
import { notifications } from "./notifications.js";
import { newRunSection } from "../run/new_run.js";
import { statusChoice, table as runTable } from "../run/runs.js";
import { schedules } from "./schedules.js";
import { usage } from "./usage.js";
import { variables } from "./variables.js";

const RUNS = 100;
const TABS = [["overview", "Overview"], ["deployments", "Deployments"], ["runs", "Runs"], ["schedules", "Schedules"], ["variables", "Variables"], ["notifications", "Notifications"], ["usage", "Usage"]];

export async function project(container, { name, tab: asked }, query, signal) {
  const tab = TABS.some(([id]) => id === asked) ? asked : "overview";
  document.title = `${name} · Crewyard`;
  const path = `/v1/projects/${encodeURIComponent(name)}`, read = () => get(path, {}, signal);
  if (tab !== "overview") return show(container, name, tab, query, signal, await read());
  // The overview shows the newest deployment and the newest runs, too.
  return keepFresh(container, signal,
    () => Promise.all([read(), list("/v1/deployments", { project: name, per_page: 1 }, signal), list("/v1/runs", { project: name, per_page: RUNS }, signal)]),
    async ([details, ...lists]) => {
      const next = h("div");
      await show(next, name, tab, query, signal, details, ...lists);
      return [...next.childNodes];
    });
}

async function show(container, name, tab, query, signal, details, ...lists) {
  const body = h("div");
  const active = details.active_deployment_id;
  fill(container, h("div", { class: "spread" }, h("h1", {}, name),
    h("div", { class: "row" }, active && tab !== "runs" && may("run", name) && h("a", { class: "button", href: `${linkTo("projects", name, "runs")}?new=yes` }, "New run"),
      may("admin", name) && h("button", { class: "danger", onclick: () => askErase(name, `/v1/projects/${encodeURIComponent(name)}`,
        "Its runs are stopped. Its deployments, runs, artifacts, variables and schedules are deleted.", linkTo("projects"), true) }, "Delete…"))),
    definitionList([["Namespace", details.namespace], ["Source", ready(details)], ["Plan", details.plan], ["Created by", details.created_by],
      ["Active deployment", active ? h("a", { href: linkTo("deployments", active) }, active) : h("span", { class: "quiet" }, "none yet")]]),
    details.ready.status === false && errorBox(details.ready.reason, details.ready.message),
    h("nav", { class: "tabs", "aria-label": "Project" }, TABS.map(([id, title]) =>
      h("a", { href: linkTo("projects", name, id), "aria-current": id === tab ? "page" : null }, title))), body);
  const views = { overview, deployments, runs, schedules, variables, notifications, usage };
  await views[tab](body, name, query, signal, details, ...lists);
}

async function deployments(container, name, query, signal, details) {
  const area = h("div");
  fill(container, area, may("deploy", name) && requirementsForm(name, details));
  await keepFresh(area, signal, () => list("/v1/deployments", { project: name, page: query.page, per_page: 30 }, signal), ({ data, pagination }) => [table([
    ["Deployment", (row) => h("a", { href: linkTo("deployments", row.id) }, row.id), "code"],
    ["Status", (row) => [deploymentBadges(row), row.smoke_run && smokeBadge(row)]],
    ["Message", (row) => row.message],
    ["Created", (row) => when(row.created_at)],
    ["Active since", (row) => row.activated_at && when(row.activated_at), "wide"],
  ], data, "No deployments yet. Push a commit, or run: crewyard deploy"), pages(pagination, linkTo("projects", name, "deployments"))]);
}

async function runs(container, name, query, signal, { active_deployment_id: active }) {
  const area = h("div"), status = statusChoice(query.status, () => setQuery({ status: status.value }));
  fill(container, active && may("run", name) && newRunSection("New run", { target: name, deployment: active }, query.new === "yes"), h("p", { class: "row" }, status), area);
  await keepFresh(area, signal, () => list("/v1/runs", { project: name, status: query.status, page: query.page, per_page: 30 }, signal),
    ({ data, pagination }) => [runTable(data, true), pages(pagination, linkTo("projects", name, "runs") + queryText({ status: query.status }))]);
}
