// One project: its deployments, runs, variables and usage, and a new run.

import { ApiError, change, get, list, random } from "./api.js";
import { chip, fill, h, problem, say, table } from "./dom.js";
import { ago } from "./format.js";
import { pages, ready } from "./projects.js";
import { to } from "./router.js";
import { table as runTable } from "./runs.js";
import { usage } from "./usage.js";
import { variables } from "./variables.js";

const TABS = [["deployments", "Deployments"], ["runs", "Runs"], ["variables", "Variables"], ["usage", "Usage"]];

export async function project(place, { name, tab = "deployments" }, query, signal) {
  document.title = `${name} · Crewyard`;
  const found = await get(`/v1/projects/${encodeURIComponent(name)}`, {}, signal);
  const body = h("div");
  const active = found.active_deployment_id;
  fill(place, h("h1", {}, name), h("p", { class: "row quiet" }, found.plan, "·", ready(found), "·",
    active ? h("a", { href: to("deployments", active) }, active) : "nothing is active yet"),
    found.ready.status === false && problem(found.ready.reason, found.ready.message),
    h("nav", { class: "tabs", "aria-label": "Project" }, TABS.map(([id, title]) =>
      h("a", { href: to("projects", name, id), "aria-current": id === tab ? "page" : null }, title))), body);
  const views = { deployments, runs, variables, usage };
  await (views[tab] ?? deployments)(body, name, query, signal, active);
}

async function deployments(place, name, query, signal) {
  const { data, pagination } = await list("/v1/deployments", { project: name, page: query.page, per_page: 30 }, signal);
  fill(place, table([
    ["Deployment", (row) => h("a", { href: to("deployments", row.id) }, row.id), "code"],
    ["Status", (row) => chip(row.status)],
    ["Message", (row) => row.message],
    ["Created", (row) => ago(row.created_at)],
    ["Active since", (row) => (row.activated_at ? ago(row.activated_at) : null)],
  ], data, "There is no deployment yet. Push a commit, or: crewyard deploy"), pages(pagination, to("projects", name, "deployments")));
}

async function runs(place, name, query, signal, active) {
  const { data, pagination } = await list("/v1/runs", { project: name, status: query.status, page: query.page, per_page: 30 }, signal);
  fill(place, active ? newRun(name) : null, runTable(data), pages(pagination, to("projects", name, "runs")));
}

/** The form that starts a run of `target`, with `input` to begin with. */
export function newRun(target, input = {}) {
  const said = h("div");
  const text = h("textarea", { id: "input", spellcheck: "false" }, JSON.stringify(input, null, 2));
  const button = h("button", { class: "main" }, "Start run");
  let sent = null;
  return h("form", { class: "box", onsubmit: async (event) => {
    event.preventDefault();
    let given;
    try {
      given = JSON.parse(text.value || "{}");
    } catch (error) {
      fill(said, problem("The input is not JSON.", String(error.message)));
      return;
    }
    button.disabled = true;
    // The same again after an answer that did not arrive is the same run.
    if (sent?.text !== text.value) sent = { text: text.value, key: random() };
    try {
      const made = await change("POST", "/v1/runs", { deployment: target, input: given }, { "Idempotency-Key": sent.key });
      sent = null;
      say(`${made.id} is ${made.status}.`);
      location.hash = to("runs", made.id);
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) sent = null;
      fill(said, problem(error.message, error.details?.field));
    } finally {
      button.disabled = false;
    }
  } }, h("label", { for: "input" }, "Input, a JSON object"), text, h("p", {}, button), said);
}

