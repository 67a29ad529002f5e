// One deployment: its state, its build log as it is written, and roll back.

import { change, follow, get } from "./api.js";
import { chip, facts, fill, h, problem, readOn, say } from "./dom.js";
import { ago } from "./format.js";
import { newRun } from "./project.js";
import { to } from "./router.js";

export async function deployment(place, { id }, _query, signal) {
  document.title = `${id} · Crewyard`;
  const path = `/v1/deployments/${encodeURIComponent(id)}`;
  const head = h("div");
  const log = h("pre", { class: "log", tabindex: 0, "aria-label": "Build log" });
  const update = async () => fill(head, ...shown(await get(path, {}, signal), path, update));
  await update();
  fill(place, head, h("h2", {}, "Build log"), log);
  let lines = [], waiting = false;
  const write = () => {
    waiting = false;
    const down = log.scrollTop + log.clientHeight >= log.scrollHeight - 30;
    log.append(lines.join(""));
    lines = [];
    if (down) log.scrollTop = log.scrollHeight;
  };
  await follow(`${path}/logs`, signal, ({ type, data }) => {
    if (type !== "log") return;
    lines.push(data.message + (data.continues ? "" : "\n"));
    if (!waiting) {
      waiting = true;
      requestAnimationFrame(write);
    }
  }, (message) => message.type === "end");
  if (!signal.aborted) await update();
}

function shown(found, path, update) {
  const { status, error } = found;
  const back = h("button", { onclick: async () => {
    back.disabled = true;
    try {
      await change("POST", `${path}/rollback`);
      say(`${found.id} is active.`);
      await update();
    } catch (failure) {
      say(failure.message);
      back.disabled = false;
    }
  } }, "Roll back to it");
  return [
    h("div", { class: "spread" }, h("h1", {}, found.id), h("div", { class: "row" }, chip(status), status === "superseded" && back)),
    facts([
      ["Project", h("a", { href: to("projects", found.project) }, found.project)],
      ["Message", found.message || null],
      ["Commit", found.git_sha && h("code", {}, found.git_sha)],
      ["Created", ago(found.created_at)],
      ["Active since", found.activated_at && ago(found.activated_at)],
      ["Place in the queue", found.queue_position],
    ]),
    error && problem(error.reason, error.message, error.hint, readOn(error)),
    (status === "active" || status === "superseded") && h("details", {}, h("summary", {}, "Run it"), newRun(found.id)),
  ];
}
