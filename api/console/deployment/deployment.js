// A deployment: its status, its live build log, cancellation and rollback.

import { change, followStream, get } from "../api.js";
import { may } from "../caller.js";
import { actionButton, definitionList, fill, h, errorBox, docsLink, waitingSince, when } from "../dom.js";
import { askErase } from "../erase.js";
import { linkTo } from "../router.js";
import { newRunSection } from "../run/new_run.js";
import { askRollback } from "./rollback.js";
import { deploymentBadges, smokeBadge, stages } from "./stages.js";

const REFRESH_MS = 3000;
const UNFINISHED = ["pending", "building"];

export async function deployment(container, { id }, _query, signal) {
  document.title = `${id} · Crewyard`;
  const path = `/v1/deployments/${encodeURIComponent(id)}`;
  const header = h("div");
  const log = h("pre", { class: "log", role: "log", tabindex: 0, "aria-label": "Build log" });
  let shown = null, watched = false;
  const update = async () => {
    const details = await get(path, {}, signal), text = JSON.stringify(details);
    // An unchanged page keeps its open parts and the keyboard's focus.
    if (text !== shown) fill(header, ...summary(details, path, update, watched));
    shown = text;
    watched = UNFINISHED.includes(details.status);
  };
  await update();
  fill(container, header, h("h2", {}, "Build log"), log);
  container.removeAttribute("aria-busy");
  const refresh = setInterval(() => {
    if (watched && !document.hidden) update().catch(() => {});
  }, REFRESH_MS);
  signal.addEventListener("abort", () => clearInterval(refresh));
  let lines = [], scheduled = false;
  const flush = () => {
    scheduled = false;
    const atBottom = log.scrollTop + log.clientHeight >= log.scrollHeight - 30;
    log.append(lines.join(""));
    lines = [];
    if (atBottom) log.scrollTop = log.scrollHeight;
  };
  await followStream(`${path}/logs`, signal, ({ type, data }) => {
    if (type !== "log") return;
    lines.push(data.message + (data.continues ? "" : "\n"));
    if (!scheduled) {
      scheduled = true;
      requestAnimationFrame(flush);
    }
  }, (message) => message.type === "end");
  if (signal.aborted) return;
  if (!lines.length && !log.textContent) log.textContent = "No log.";
  await update();
}

/** `watched`: the page was open while the deployment was on its way. */
function summary(details, path, update, watched) {
  const { status, error } = details;
  const rollbackButton = h("button", { onclick: () => askRollback(details, path, update) }, "Roll back…");
  const eraseButton = h("button", { class: "danger", onclick: () => askErase(details.id, path,
    "Its image and its build log are deleted. The records of its runs stay.", linkTo("projects", details.project)) }, "Erase…");
  const cancelButton = actionButton("Cancel", async () => {
    await change("POST", `${path}/cancel`);
    await update();
  }, { disabled: details.cancel_requested });
  const buttons = [status === "superseded" && !details.is_preview && rollbackButton, (status === "superseded" || status === "failed") && eraseButton, UNFINISHED.includes(status) && cancelButton];
  return [
    h("div", { class: "spread" }, h("h1", {}, details.id), h("div", { class: "row" }, deploymentBadges(details), details.smoke_run && smokeBadge(details), may("deploy", details.project) && buttons)),
    stages(details),
    definitionList([
      ["Project", h("a", { href: linkTo("projects", details.project) }, details.project)],
      ["Message", details.message || null],
      ["Commit", details.git_sha && h("code", {}, details.git_sha)],
      ["Created", when(details.created_at)],
      ["Created by", details.created_by],
      ["Active since", details.activated_at && when(details.activated_at)],
      ["Queue position", details.queue_position],
      ["Waiting", waitingSince(details.waiting)],
      ["Cancel", details.cancel_requested && "requested"],
    ]),
    error && errorBox(error.reason, error.message, error.hint, docsLink(error)),
    (status === "active" || status === "superseded") && may("run", details.project) && newRunSection(watched ? "The crew can run now: start its first run" : "New run", { target: details.id, deployment: details.id }, watched),
  ];
}
