// The rollback of a project to a deployment, after a question that lists what it undoes.

import { change, get, list } from "../api.js";
import { errorBox, fill, h, notify } from "../dom.js";
import { ago } from "../format.js";

const DEPLOYMENTS = 100;

/** Ask, then make the deployment the active one. Call `done` afterwards. */
export async function askRollback(details, path, done) {
  const body = h("div", {}, h("p", { class: "quiet" }, "…")), errorArea = h("div");
  const dialog = h("dialog", { "aria-labelledby": "rollback-title", onclose: () => dialog.remove() });
  const confirmButton = h("button", { type: "button", class: "main", onclick: async () => {
    confirmButton.disabled = true;
    try {
      await change("POST", `${path}/rollback`);
      dialog.close();
      notify(`${details.id} is active.`);
      await done();
    } catch (failure) {
      fill(errorArea, errorBox(failure.message));
      confirmButton.disabled = false;
    }
  } }, "Roll back");
  dialog.append(h("h2", { id: "rollback-title" }, `Roll back to ${details.message || details.id}?`), body, errorArea,
    h("p", { class: "row" }, confirmButton, h("button", { type: "button", onclick: () => dialog.close() }, "Keep the active one")));
  document.body.append(dialog);
  dialog.showModal();
  try {
    fill(body, await changes(details));
  } catch (failure) {
    fill(body, errorBox(failure.message));
  }
}

async function changes(details) {
  const { active_deployment_id: active } = await get(`/v1/projects/${encodeURIComponent(details.project)}`);
  const { data } = await list("/v1/deployments", { project: details.project, per_page: DEPLOYMENTS });
  const { undone, between } = deploymentsBetween(data, active, details.id);
  const note = h("p", {}, "New runs use the image of this deployment at once, without a build. Runs that have started keep theirs.");
  if (between === null) return [note, h("p", { class: "quiet" }, "The deployments between are older than the last 100.")];
  return [note, h("p", {}, undone ? `This undoes ${count(between.length)}:` : `This brings back ${count(between.length)}:`),
    h("ul", {}, between.map((row) => h("li", {}, row.message || row.id, h("span", { class: "quiet" }, ` ${row.id}, ${row.status}, ${ago(row.created_at)}`))))];
}

/** Return the deployments that a change from `active` to `target` undoes or brings back, of a list with the newest first. */
export function deploymentsBetween(rows, active, target) {
  const from = rows.findIndex((row) => row.id === active), to = rows.findIndex((row) => row.id === target);
  if (from < 0 || to < 0) return { undone: true, between: null };
  return to > from ? { undone: true, between: rows.slice(from, to) } : { undone: false, between: rows.slice(to, from) };
}

function count(number) {
  return number === 1 ? "1 deployment" : `${number} deployments`;
}
