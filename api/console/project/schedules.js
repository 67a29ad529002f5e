// The schedules of a project: times at which its active deployment runs automatically.

import { change, list } from "../api.js";
import { may } from "../caller.js";
import { attempts, fill, h, table } from "../dom.js";
import { until } from "../format.js";
import { keepFresh } from "../refresh.js";
import { linkTo } from "../router.js";
import { InputEditor, inputSchema } from "../form/input_editor.js";

const SPEC = ["cron", "time_zone", "input", "entrypoint", "labels", "concurrency_policy", "starting_deadline"];

/** Show the schedules with their next time and last run, and the form of a new one. */
export async function schedules(container, name, query, signal, project) {
  const path = `/v1/projects/${encodeURIComponent(name)}/schedules`;
  const schema = await inputSchema(project.active_deployment_id), area = h("div");
  const reload = () => schedules(container, name, query, signal, project);
  const errorArea = h("div");
  const attempt = attempts(errorArea, reload);
  const put = (row, changes) => change("PUT", `${path}/${encodeURIComponent(row.name)}`,
    { ...Object.fromEntries(SPEC.filter((field) => row[field] !== null && row[field] !== undefined).map((field) => [field, row[field]])), ...changes });
  const rows = ({ data }) => table([
    ["Name", (row) => row.name, "code"],
    ["When", (row) => `${row.cron} ${row.time_zone}`, "code"],
    ["Next", (row) => (row.suspend ? "suspended" : row.next_time && `${time(row.next_time)}, ${until(row.next_time)}`)],
    ["Last run", (row) => row.last_run_id && h("a", { href: linkTo("runs", row.last_run_id) }, time(row.last_time)), "wide"],
    ["", (row) => row.message ?? ""],
    ["", (row) => may("run", name) && h("div", { class: "row" },
      h("button", { "aria-label": `${row.suspend ? "Resume" : "Suspend"} ${row.name}`, onclick: () =>
        attempt(() => put(row, { suspend: !row.suspend }), `${row.name} is ${row.suspend ? "resumed" : "suspended"}.`) },
      row.suspend ? "Resume" : "Suspend"),
      h("button", { class: "danger", "aria-label": `Remove ${row.name}`, onclick: () => {
        if (confirm(`Remove ${row.name}?`)) attempt(() => change("DELETE", `${path}/${encodeURIComponent(row.name)}`), `${row.name} was removed.`);
      } }, "Remove"))],
  ], data, "No schedules.");
  fill(container, area, may("run", name) && form(attempt, put, schema, errorArea));
  await keepFresh(area, signal, () => list(path, { per_page: 100 }, signal), rows);
}

function form(attempt, put, schema, errorArea) {
  const name = h("input", { id: "schedule", required: true, maxlength: 20, placeholder: "weekdays" });
  const cron = h("input", { id: "cron", required: true, placeholder: "0 7 * * MON-FRI" });
  const zone = h("input", { id: "zone", value: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC" });
  const editor = new InputEditor(schema, {}, "schedule-input");
  return h("form", { class: "box", onsubmit: (event) => {
    event.preventDefault();
    const input = editor.attempt(() => editor.read());
    if (input === undefined) return;
    attempt(() => put({ name: name.value }, { cron: cron.value, time_zone: zone.value || "UTC", input }), `${name.value} is set.`);
  } }, h("h2", {}, "Set a schedule"), h("label", { for: "schedule" }, "Name"), name,
    h("label", { for: "cron" }, "Minute, hour, day, month, weekday"), cron,
    h("label", { for: "zone" }, "Time zone"), zone,
    editor.element, h("p", { class: "row" }, h("button", { class: "main" }, "Set schedule"), editor.switchButton), errorArea);
}

function time(text) {
  return text ? new Date(text).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) : null;
}
