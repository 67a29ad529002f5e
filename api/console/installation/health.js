// Whether the parts of the installation work, and what waits and runs now; refreshed while the page is visible.

import { get } from "../api.js";
import { card, h, statusBadge, table, when } from "../dom.js";
import { keepFresh } from "../refresh.js";
import { linkTo } from "../router.js";

const STATES = { true: ["active", "works"], false: ["failed", "does not work"], null: ["superseded", "unknown"] };

export async function health(container, _query, signal) {
  await keepFresh(container, signal, () => get("/v1/installation", {}, signal), view);
}

function view({ components, leading, runs, builds, notifications }) {
  const server = { name: "API server", ready: true, message: leading ? "this replica leads" : "another replica leads" };
  return [
    table([
      ["Part", (row) => row.name],
      ["State", ({ ready }) => h("span", { class: `chip ${STATES[ready][0]}` }, STATES[ready][1])],
      ["", (row) => row.message ?? ""],
    ], [server, ...components], ""),
    h("div", { class: "cards" },
      card("Runs", `${runs.running} running`, `${runs.pending} waiting`),
      card("Builds", `${builds.running} of ${builds.slots} slots in use`, `${builds.waiting} waiting`),
      card("Notifications", `${notifications.pending} to deliver`, `${notifications.failing} failing receivers`)),
    h("h2", {}, "Builds"),
    table([
      ["Deployment", (row) => h("a", { href: linkTo("deployments", row.id) }, row.id), "code"],
      ["Project", (row) => h("a", { href: linkTo("projects", row.project) }, row.project)],
      ["Status", (row) => statusBadge(row.status)],
      ["Message", (row) => row.message],
      ["Created", (row) => when(row.created_at), "wide"],
    ], builds.deployments, "No build waits or runs."),
  ];
}
