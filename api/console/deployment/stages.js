// The way of a deployment from its commit to active, as a row of stages.

import { h } from "../dom.js";
import { ago, waitingText } from "../format.js";

const STAGES = [["found", "Found"], ["queued", "Waiting"], ["building", "Building"], ["active", "Active"]];
const REACHED = { pending: 1, building: 2, active: 4, superseded: 4 };

/** Create the stages of a deployment of the API. */
export function stages(details) {
  const ended = details.status === "failed" || details.status === "canceled";
  // Of a deployment that failed nothing tells whether it waited or was built; it did not become active.
  const reached = ended ? 3 : REACHED[details.status] ?? 0;
  return h("ol", { class: "stages", "aria-label": "Stages" }, STAGES.map(([id, title], index) => {
    const state = ended && index === 3 ? "failed" : index < reached ? "done" : index === reached ? "now" : "next";
    return h("li", { class: state, "aria-current": state === "now" ? "step" : null },
      h("b", {}, ended && index === 3 ? "Failed" : title), h("span", { class: "quiet" }, note(id, details, state)));
  }));
}

function note(id, details, state) {
  if (id === "found") return ago(details.created_at);
  if (id === "active" && details.activated_at) return ago(details.activated_at);
  if (id === "queued" && state === "now") return details.queue_position ? `position ${details.queue_position}` : waitingText(details.waiting) ?? "";
  return id === "active" && state === "failed" ? details.error?.reason ?? "" : "";
}
