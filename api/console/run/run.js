// A run: status, live events, input, output, artifacts, cancel and run again.

import { change, followStream, get } from "../api.js";
import { artifacts } from "./artifacts.js";
import { statusBadge, definitionList, fill, h, errorBox, docsLink, notify } from "../dom.js";
import { ago, duration, formatValue, waitingText } from "../format.js";
import { newRun } from "../project/project.js";
import { linkTo } from "../router.js";
import { Timeline } from "./timeline.js";

const ARTIFACTS_REFRESH_MS = 3000;
const TERMINAL_EVENTS = ["run.completed", "run.failed", "run.canceled"];

export async function run(container, { id }, _query, signal) {
  document.title = `${id} · Crewyard`;
  const path = `/v1/runs/${encodeURIComponent(id)}`;
  const header = h("div"), footer = h("div"), files = h("div");
  const timeline = new Timeline();
  const update = async () => {
    const details = await get(path, {}, signal);
    fill(header, ...summary(details, path, update));
    fill(footer, ...inputAndOutput(details));
  };
  await update();
  fill(container, header, h("h2", {}, "Events"), timeline.element, footer, h("h2", {}, "Artifacts"), files);
  await artifacts(files, path, signal);
  // Refresh the list once for many artifact events: every refresh is a rate-limited request.
  let scheduled = false;
  const refreshArtifacts = () => {
    if (scheduled) return;
    scheduled = true;
    setTimeout(() => {
      scheduled = false;
      if (!signal.aborted) artifacts(files, path, signal).catch(() => {});
    }, ARTIFACTS_REFRESH_MS);
  };
  await followStream(`${path}/events`, signal, (message) => {
    timeline.add(message);
    if (message.type === "run.started") update().catch(() => {});
    if (message.type === "artifact") refreshArtifacts();
  }, (message) => TERMINAL_EVENTS.includes(message.type));
  timeline.write();
  if (signal.aborted) return;
  await update();
  await artifacts(files, path, signal);
}

function summary(details, path, update) {
  const finished = ["succeeded", "failed", "canceled"].includes(details.status);
  const cancelButton = h("button", { class: "danger", onclick: async () => {
    cancelButton.disabled = true;
    try {
      await change("POST", `${path}/cancel`);
      notify("Cancelling the run.");
      await update();
    } catch (failure) {
      notify(failure.message);
      cancelButton.disabled = false;
    }
  } }, "Cancel");
  return [
    h("div", { class: "spread" }, h("h1", {}, details.id), h("div", { class: "row" }, statusBadge(details.status), !finished && cancelButton)),
    definitionList([
      ["Project", details.project && h("a", { href: linkTo("projects", details.project) }, details.project)],
      ["Deployment", details.deployment_id && h("a", { href: linkTo("deployments", details.deployment_id) }, details.deployment_id)],
      ["Created", ago(details.created_at)],
      ["Queue position", details.queue_position],
      ["Waiting", waitingText(details.waiting)],
      ["Cancel", details.cancel_requested && "requested"],
      ["Duration", finished ? duration(details.duration_ms) : null],
    ]),
    details.error && errorBox(details.error.reason ?? "Failed", h("pre", {}, details.error.message ?? ""), docsLink(details.error)),
  ];
}

function inputAndOutput(details) {
  return [
    details.status === "succeeded" && [h("h2", {}, "Output"), h("pre", {}, formatValue(details.output ?? null))],
    h("h2", {}, "Input"), h("pre", {}, formatValue(details.input)),
    details.deployment_id && h("details", {}, h("summary", {}, "Run again"), newRun(details.deployment_id, details.input)),
  ].flat();
}
