// The panel beside the timeline: all of the step or event that the user picked.

import { docsLink, definitionList, errorBox, fill, h, notify, statusBadge } from "../dom.js";
import { duration, formatValue, shorten, timeOfDay } from "../format.js";
import { costs } from "./cost.js";
import { fieldsOf } from "./event_text.js";

export const OUTPUT_IS_FILE = "The output is the artifact output.json, as a large one is.";

/** Return whether a run's output is not in its record, but an artifact. Pure. */
export function isFile({ output = null }, { outputFile }) {
  return output === null && outputFile;
}

/** Show the run itself: its error, output, input, tokens and cost. */
export function showRun(panel, details, steps, prices) {
  const { error } = details;
  fill(panel, h("h2", {}, "Run"),
    error && errorBox(error.reason ?? "Failed", h("pre", {}, error.message ?? ""), docsLink(error)),
    !details.completed_at && h("p", { class: "quiet" }, "The output appears here once the run has ended."),
    details.status === "succeeded" && (isFile(details, steps) ? h("p", {}, OUTPUT_IS_FILE) : block("Output", details.output ?? null)), block("Input", details.input),
    costs(details, steps, prices));
}

/** Show a step; `onFilter` limits the list of events to it. */
export function showStep(panel, step, onFilter) {
  const owner = step.kind === "task" ? step.parent.name : step.name;
  const tokens = step.modelCalls ? `${step.promptTokens.toLocaleString()} in, ${step.completionTokens.toLocaleString()} out` : null;
  fill(panel, h("h2", {}, shorten(owner, 200)), h("p", { class: "row" }, statusBadge(step.status), h("span", { class: "quiet" }, step.kind)),
    definitionList([
      ["Started", step.start === null ? null : timeOfDay(step.start)],
      ["Duration", step.start === null || step.end === null ? null : duration(step.end - step.start)],
      ["Tasks", step.kind === "agent" ? String(step.children.length) : null],
      ["Model calls", step.modelCalls && step.kind !== "model" ? `${step.modelCalls} (${[...step.models].join(", ") || "unknown model"})` : null],
      ["Tokens", tokens],
    ]),
    step.error !== undefined && errorBox("Error", h("pre", {}, formatValue(step.error))),
    step.kind === "task" && block("Task", step.input ?? null),
    step.kind === "tool" && step.input !== undefined && block("Input", step.input),
    step.output !== undefined && block("Output", step.output),
    h("p", {}, h("button", { type: "button", onclick: onFilter }, "Show its events")));
}

/** Show an event with all its fields. */
export function showEvent(panel, { type, id, data }) {
  fill(panel, h("h2", {}, type), definitionList([["Time", data.timestamp], ["Event", id], ["Level", data.level]]),
    type === "log" ? block("Message", data.message ?? "") : Object.entries(fieldsOf(data)).map(([name, value]) => block(name, value)));
}

function block(title, value) {
  const text = formatValue(value) ?? "";
  return h("section", { class: "value" }, h("div", { class: "spread" }, h("h3", {}, title), h("button", { type: "button", class: "small",
    "aria-label": `Copy ${title}`, onclick: async () => {
      try {
        await navigator.clipboard.writeText(text);
        notify(`${title} is copied.`);
      } catch {
        notify("The browser does not allow copying here; select the text.");
      }
    } }, "Copy")), h("pre", { tabindex: 0 }, text));
}
