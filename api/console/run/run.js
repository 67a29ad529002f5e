// A run: status, live timeline and events, input, output, artifacts, cancel and run again.

import { change, followStream, get } from "../api.js";
import { may } from "../caller.js";
import { actionButton, statusBadge, definitionList, fill, h, notify, waitingSince, when } from "../dom.js";
import { askErase } from "../erase.js";
import { duration, labelsText } from "../format.js";
import { linkTo } from "../router.js";
import { artifacts } from "./artifacts.js";
import { EventLog } from "./event_log.js";
import { newRunSection } from "./new_run.js";
import { showEvent, showRun, showStep } from "./panel.js";
import { Questions } from "./questions.js";
import { Steps, isLast } from "./steps.js";
import { Timeline } from "./timeline.js";

const ARTIFACTS_REFRESH_MS = 3000;
const DETAILS_REFRESH_MS = 200;
const WAITING_REFRESH_MS = 3000;
const TIMELINE_REFRESH_MS = 500;

export async function run(container, { id }, _query, signal) {
  document.title = `${id} · Crewyard`;
  const path = `/v1/runs/${encodeURIComponent(id)}`;
  const header = h("div"), again = h("div"), files = h("div");
  const panel = h("aside", { class: "panel", "aria-label": "Details", "aria-live": "polite" });
  const steps = new Steps(), clock = new RunClock();
  let details = null, shown = null, prices = null, showsRun = true;
  // On a narrow screen the panel is below the list.
  const reveal = () => panel.scrollIntoView({ block: "nearest" });
  const log = new EventLog((event) => {
    showsRun = false;
    showEvent(panel, event);
    reveal();
  });
  const timeline = new Timeline(steps, (step) => {
    showsRun = step === steps.run;
    if (showsRun) showRun(panel, details, steps, prices);
    else showStep(panel, step, () => log.setFilter({ step }));
    reveal();
  });
  const questions = new Questions(path, () => update());
  const show = () => {
    if (showsRun) showRun(panel, details, steps, prices);
  };
  const update = async () => {
    details = await get(path, {}, signal);
    const text = JSON.stringify(details);
    // An unchanged page keeps the keyboard's focus and what is selected.
    if (text === shown) return;
    shown = text;
    fill(header, ...summary(details, path, update));
    // A run that waits may not have its deployment yet.
    if (!again.childElementCount) fill(again, runAgain(details));
    questions.show(details.input_requests ?? [], may("run", details.project));
    show();
  };
  await update();
  // The page does not wait for the prices.
  pricesOf(details.project, signal).then((found) => {
    if (!found) return;
    prices = found;
    show();
  });
  fill(container, header, questions.element, again, h("div", { class: "beside" },
    h("div", {}, h("h2", {}, "Timeline"), timeline.element, h("h2", {}, "Events"), log.element), panel),
  h("h2", {}, "Artifacts"), files);
  container.removeAttribute("aria-busy");
  const refresh = setInterval(() => timeline.render(clock.now()), TIMELINE_REFRESH_MS);
  // A run that waits has no events.
  const waiting = setInterval(() => {
    if (details.status === "pending" && !document.hidden) update().catch(() => {});
  }, WAITING_REFRESH_MS);
  signal.addEventListener("abort", () => { clearInterval(refresh); clearInterval(waiting); timeline.list.close(); log.list.close(); });
  await artifacts(files, path, signal);
  // Refresh once for many events: every refresh is a rate-limited request.
  const soon = (milliseconds, work) => {
    let scheduled = false;
    return () => {
      if (scheduled) return;
      scheduled = true;
      setTimeout(() => {
        scheduled = false;
        if (!signal.aborted) work().catch(() => {});
      }, milliseconds);
    };
  };
  const refreshArtifacts = soon(ARTIFACTS_REFRESH_MS, () => artifacts(files, path, signal));
  const refreshDetails = soon(DETAILS_REFRESH_MS, update);
  await followStream(`${path}/events`, signal, (message) => {
    log.add(message);
    clock.see(message.data.timestamp);
    steps.add(message);
    if (!details.completed_at && (message.type === "run.started" || message.type.startsWith("input."))) refreshDetails();
    if (message.type === "artifact") refreshArtifacts();
  }, isLast);
  if (signal.aborted) return;
  clearInterval(refresh);
  timeline.render(clock.now());
  await update();
  show();
  await artifacts(files, path, signal);
}

/** Return the prices of the installation, which the usage of a project tells; null without them. */
async function pricesOf(project, signal) {
  if (!project) return null;
  const today = new Date().toISOString().slice(0, 10);
  const usage = await get(`/v1/projects/${encodeURIComponent(project)}/usage`, { from: today, to: today }, signal).catch(() => null);
  return usage?.prices ?? null;
}

/** The time of the service: that of the newest event, and what has passed since. */
class RunClock {
  constructor() {
    Object.assign(this, { at: Date.now(), since: performance.now() });
  }

  see(timestamp) {
    Object.assign(this, { at: Date.parse(timestamp), since: performance.now() });
  }

  now() {
    return this.at + performance.now() - this.since;
  }
}

function summary(details, path, update) {
  const finished = ["succeeded", "failed", "canceled"].includes(details.status);
  const eraseButton = h("button", { class: "danger", onclick: () => askErase(details.id, path,
    "Its input, output, events and artifacts are deleted. What it used stays in the usage of the project.", linkTo("runs")) }, "Erase…");
  const cancelButton = actionButton("Cancel", async () => {
    await change("POST", `${path}/cancel`);
    notify("Cancelling the run.");
    await update();
  }, { class: "danger" });
  return [
    h("div", { class: "spread" }, h("h1", {}, details.id), h("div", { class: "row" }, statusBadge(details.status),
      finished && details.project && h("a", { class: "button", href: linkTo("runs", details.id, "compare") }, "Compare"), finished ? may("deploy", details.project) && eraseButton : may("run", details.project) && cancelButton)),
    definitionList([
      ["Project", details.project && h("a", { href: linkTo("projects", details.project) }, details.project)],
      ["Deployment", details.deployment_id && h("a", { href: linkTo("deployments", details.deployment_id) }, details.deployment_id)],
      ["Created", when(details.created_at)],
      ["Created by", details.created_by],
      ["Queue position", details.queue_position],
      ["Waiting", waitingSince(details.waiting)],
      ["Cancel", details.cancel_requested && "requested"],
      ["Entrypoint", details.entrypoint],
      ["Timeout", details.timeout],
      ["Repeats", details.rerun_of && h("a", { href: linkTo("runs", details.rerun_of) }, details.rerun_of)],
      ["Labels", labelsText(details.labels)],
      ["Duration", finished ? duration(details.duration_ms) : null],
    ]),
  ];
}

function runAgain(details) {
  if (!details.deployment_id || !may("run", details.project)) return null;
  const { deployment_id: target, entrypoint, input } = details;
  return newRunSection("Run again", { target, deployment: target, entrypoint, input: input ?? {}, path: `/v1/runs/${encodeURIComponent(details.id)}/rerun` });
}
