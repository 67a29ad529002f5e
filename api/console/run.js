// One run: state, events as they come, input, output, artifacts, cancel and run again.

import { change, follow, get } from "./api.js";
import { artifacts } from "./artifacts.js";
import { chip, facts, fill, h, problem, readOn, say } from "./dom.js";
import { ago, duration, whole } from "./format.js";
import { newRun } from "./project.js";
import { to } from "./router.js";
import { Timeline } from "./timeline.js";

const LOOK = 3000;
const LAST = ["run.completed", "run.failed", "run.canceled"];

export async function run(place, { id }, _query, signal) {
  document.title = `${id} · Crewyard`;
  const path = `/v1/runs/${encodeURIComponent(id)}`;
  const head = h("div"), tail = h("div"), files = h("div");
  const timeline = new Timeline();
  const update = async () => {
    const found = await get(path, {}, signal);
    fill(head, ...shown(found, path, update));
    fill(tail, ...ending(found));
  };
  await update();
  fill(place, head, h("h2", {}, "Events"), timeline.element, tail, h("h2", {}, "Artifacts"), files);
  await artifacts(files, path, signal);
  // A thousand files that are told at once are one look at the list: looks count as requests.
  let planned = false;
  const listed = () => {
    if (planned) return;
    planned = true;
    setTimeout(() => {
      planned = false;
      if (!signal.aborted) artifacts(files, path, signal).catch(() => {});
    }, LOOK);
  };
  await follow(`${path}/events`, signal, (message) => {
    timeline.add(message);
    if (message.type === "run.started") update().catch(() => {});
    if (message.type === "artifact") listed();
  }, (message) => LAST.includes(message.type));
  timeline.write();
  if (signal.aborted) return;
  await update();
  await artifacts(files, path, signal);
}

function shown(found, path, update) {
  const over = ["succeeded", "failed", "canceled"].includes(found.status);
  const stop = h("button", { class: "danger", onclick: async () => {
    stop.disabled = true;
    try {
      await change("POST", `${path}/cancel`);
      say("The run is being stopped.");
      await update();
    } catch (failure) {
      say(failure.message);
      stop.disabled = false;
    }
  } }, "Cancel");
  return [
    h("div", { class: "spread" }, h("h1", {}, found.id), h("div", { class: "row" }, chip(found.status), !over && stop)),
    facts([
      ["Project", found.project && h("a", { href: to("projects", found.project) }, found.project)],
      ["Deployment", found.deployment_id && h("a", { href: to("deployments", found.deployment_id) }, found.deployment_id)],
      ["Created", ago(found.created_at)],
      ["Place in the queue", found.queue_position],
      ["Took", over ? duration(found.duration_ms) : null],
    ]),
    found.error && problem(found.error.reason ?? "Failed", h("pre", {}, found.error.message ?? ""), readOn(found.error)),
  ];
}

function ending(found) {
  return [
    found.status === "succeeded" && [h("h2", {}, "Output"), h("pre", {}, whole(found.output ?? null))],
    h("h2", {}, "Input"), h("pre", {}, whole(found.input)),
    found.deployment_id && h("details", {}, h("summary", {}, "Run again"), newRun(found.deployment_id, found.input)),
  ].flat();
}
