// A deployment: its status, its live build log, cancellation and rollback.

import { change, followStream, get } from "../api.js";
import { actionButton, statusBadge, definitionList, fill, h, errorBox, docsLink } from "../dom.js";
import { ago, duration, waitingText } from "../format.js";
import { linkTo } from "../router.js";
import { newRun } from "../run/new_run.js";
import { askRollback } from "./rollback.js";
import { stages } from "./stages.js";

export async function deployment(container, { id }, _query, signal) {
  document.title = `${id} · Crewyard`;
  const path = `/v1/deployments/${encodeURIComponent(id)}`;
  const header = h("div");
  const log = h("pre", { class: "log", role: "log", tabindex: 0, "aria-label": "Build log" });
  const update = async () => fill(header, ...summary(await get(path, {}, signal), path, update));
  await update();
  fill(container, header, h("h2", {}, "Build log"), log);
  container.removeAttribute("aria-busy");
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
  if (!signal.aborted) await update();
}

function summary(details, path, update) {
  const { status, error } = details;
  const rollbackButton = h("button", { onclick: () => askRollback(details, path, update) }, "Roll back…");
  const cancelButton = actionButton("Cancel", async () => {
    await change("POST", `${path}/cancel`);
    await update();
  }, { disabled: details.cancel_requested });
  return [
    h("div", { class: "spread" }, h("h1", {}, details.id), h("div", { class: "row" }, statusBadge(status), status === "superseded" && rollbackButton, (status === "pending" || status === "building") && cancelButton)),
    stages(details),
    definitionList([
      ["Project", h("a", { href: linkTo("projects", details.project) }, details.project)],
      ["Message", details.message || null],
      ["Commit", details.git_sha && h("code", {}, details.git_sha)],
      ["Created", ago(details.created_at)],
      ["Active since", details.activated_at && ago(details.activated_at)],
      ["Queue position", details.queue_position],
      ["Waiting", waitingText(details.waiting)],
      ["Build", details.stages?.map(({ name, seconds }) => `${name} ${seconds === undefined ? "…" : duration(seconds * 1000)}`).join(", ")],
      ["Cancel", details.cancel_requested && "requested"],
    ]),
    error && errorBox(error.reason, error.message, error.hint, docsLink(error)),
    (status === "active" || status === "superseded") && h("details", {}, h("summary", {}, "New run"), newRun(details.id)),
  ];
}
