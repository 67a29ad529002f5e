// The notifications of a project: receivers and deliveries, each of which can be sent again.

import { change, list } from "../api.js";
import { may } from "../caller.js";
import { attempts, fill, h, statusBadge, table, when } from "../dom.js";
import { until } from "../format.js";
import { pages } from "./projects.js";
import { linkTo } from "../router.js";

const VIEWS = { run: "runs", deployment: "deployments" };

export async function notifications(container, name, query, signal, { notifications: receivers, failing_notifications: failing }) {
  const path = `/v1/projects/${encodeURIComponent(name)}/deliveries`;
  const { data, pagination } = await list(path, { page: query.page, per_page: 50 }, signal);
  const errorArea = h("div");
  const attempt = attempts(errorArea, () => notifications(container, name, query, signal, { notifications: receivers, failing_notifications: failing }));
  fill(container, table([
    ["Receiver", (row) => row.name, "code"],
    ["URL", (row) => row.url, "code"],
    ["Events", (row) => row.events.join(", ")],
    ["State", (row) => (failing.includes(row.name) ? h("span", { class: "chip failed" }, "failing") : "")],
  ], receivers ?? [], "No receivers. Set them in the Project as spec.notifications."),
  h("h2", {}, "Deliveries"), errorArea, table([
    ["Event", (row) => row.type],
    ["Of", (row) => h("a", { href: linkTo(VIEWS[row.type.split(".")[0]], row.object_id) }, row.object_id), "code"],
    ["Receiver", (row) => row.notification, "code wide"],
    ["Status", (row) => statusBadge(row.status)],
    ["Attempts", (row) => String(row.attempts), "number wide"],
    ["Response", (row) => [row.response_status, row.error].filter(Boolean).join(": ")],
    ["Created", (row) => when(row.created_at), "wide"],
    ["Next attempt", (row) => row.next_attempt_at && until(row.next_attempt_at), "wide"],
    ["", (row) => may("deploy", name) && h("button", { "aria-label": `Redeliver ${row.id}`, onclick: () =>
      attempt(() => change("POST", `${path}/${encodeURIComponent(row.id)}/redeliver`), `${row.id} will be sent again.`) }, "Redeliver")],
  ], data, "No deliveries in the last seven days."), pages(pagination, linkTo("projects", name, "notifications")));
}
