// The schedules of a project: times at which its active deployment runs automatically.

import { change, list } from "../api.js";
import { may } from "../caller.js";
import { attempts, fill, h, localTime, table } from "../dom.js";
import { labelsText, shorten, until } from "../format.js";
import { keepFresh } from "../refresh.js";
import { linkTo } from "../router.js";
import { InputEditor, inputSchema } from "../form/input_editor.js";

const SPEC = ["cron", "time_zone", "input", "entrypoint", "labels", "concurrency_policy", "starting_deadline", "suspend"];
const MAX_INPUT_LENGTH = 60;

/** Return the body that sets a schedule: what `row` has, with the changes. Pure. */
export function specOf(row, changes) {
  const kept = SPEC.map((field) => [field, row[field]]).filter(([, value]) => value !== null && value !== undefined);
  return { ...Object.fromEntries(kept), ...changes };
}

/** Return the lines of a schedule's other settings, without those that are left to their defaults. Pure. */
export function settingsOf({ entrypoint, input, concurrency_policy: policy, starting_deadline: deadline, labels }) {
  const hasInput = Object.keys(input ?? {}).length > 0;
  return [
    ["entrypoint", entrypoint], ["input", hasInput && shorten(input, MAX_INPUT_LENGTH)],
    ["concurrency", policy !== "Allow" && policy], ["deadline", deadline], ["labels", labelsText(labels)],
  ].filter(([, text]) => text).map(([name, text]) => `${name} ${text}`);
}

/** Show the schedules with their next time and last run, and the form of a new one. */
export async function schedules(container, name, query, signal, project) {
  const path = `/v1/projects/${encodeURIComponent(name)}/schedules`;
  const schema = await inputSchema(project.active_deployment_id), area = h("div"), formArea = h("div");
  const reload = () => schedules(container, name, query, signal, project);
  const errorArea = h("div");
  const attempt = attempts(errorArea, reload);
  // What the change does not have stays, also for a name that was typed and for what has changed meanwhile.
  const save = async (row, changes) => {
    const { data } = await list(path, { per_page: 100 });
    await change("PUT", `${path}/${encodeURIComponent(row.name)}`, specOf(data.find((one) => one.name === row.name) ?? row, changes));
  };
  const edit = (row) => fill(formArea, form(attempt, save, schema, errorArea, row, () => edit()));
  const rows = ({ data }) => table([
    ["Name", (row) => row.name, "code"],
    ["When", (row) => `${row.cron} ${row.time_zone}`, "code"],
    ["Next", (row) => (row.suspend ? "suspended" : row.next_time && `${localTime(row.next_time)}, ${until(row.next_time)}`)],
    ["Last run", (row) => row.last_run_id && h("a", { href: linkTo("runs", row.last_run_id) }, localTime(row.last_time)), "wide"],
    ["Settings", settings, "wide"],
    ["", (row) => row.message ?? ""],
    ["", (row) => may("run", name) && h("div", { class: "row" },
      h("button", { "aria-label": `Edit ${row.name}`, onclick: () => {
        fill(errorArea);
        edit(row);
        document.getElementById("cron").focus();
      } }, "Edit"),
      h("button", { "aria-label": `${row.suspend ? "Resume" : "Suspend"} ${row.name}`, onclick: () =>
        attempt(() => save(row, { suspend: !row.suspend }), `${row.name} is ${row.suspend ? "resumed" : "suspended"}.`) },
      row.suspend ? "Resume" : "Suspend"),
      h("button", { class: "danger", "aria-label": `Remove ${row.name}`, onclick: () => {
        if (confirm(`Remove ${row.name}?`)) attempt(() => change("DELETE", `${path}/${encodeURIComponent(row.name)}`), `${row.name} was removed.`);
      } }, "Remove"))],
  ], data, "No schedules.");
  fill(container, area, may("run", name) && formArea);
  edit();
  await keepFresh(area, signal, () => list(path, { per_page: 100 }, signal), rows);
}

/** Create the form of a new schedule, or of the one in `row`; `cancel` ends its editing. */
function form(attempt, save, schema, errorArea, row, cancel) {
  const name = h("input", { id: "schedule", required: true, maxlength: 20, placeholder: "weekdays", value: row?.name, readonly: Boolean(row) });
  const cron = h("input", { id: "cron", required: true, placeholder: "0 7 * * MON-FRI", value: row?.cron });
  const zone = h("input", { id: "zone", value: row?.time_zone ?? (Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC") });
  // The schema is that of the deployment's own entrypoint.
  const editor = new InputEditor(row?.entrypoint ? null : schema, row?.input ?? {}, "schedule-input");
  return h("form", { class: "box", onsubmit: (event) => {
    event.preventDefault();
    const input = editor.attempt(() => editor.read());
    if (input === undefined) return;
    attempt(() => save(row ?? { name: name.value }, { cron: cron.value, time_zone: zone.value || "UTC", input }), `${name.value} is set.`);
  } }, h("h2", {}, row ? `Edit ${row.name}` : "Set a schedule"), h("label", { for: "schedule" }, "Name"), name,
    h("label", { for: "cron" }, "Minute, hour, day, month, weekday"), cron,
    h("label", { for: "zone" }, "Time zone"), zone,
    editor.element, h("p", { class: "row" }, h("button", { class: "main" }, "Set schedule"), row && h("button", { type: "button", onclick: cancel }, "Cancel"), editor.switchButton), errorArea);
}

function settings(row) {
  const lines = settingsOf(row);
  return lines.length > 0 ? lines.map((line) => h("div", {}, line)) : null;
}
