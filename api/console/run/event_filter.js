// Which events of a run the list shows: by kind, level, step and text. Pure.

import { eventLine } from "./event_text.js";

export const KINDS = [["", "All events"], ["log", "Log lines"], ["step", "Agents and tools"], ["usage", "Model calls"], ["artifact", "Artifacts"]];
export const LEVELS = [["", "All levels"], ["warning", "Warnings and errors"], ["error", "Errors"]];
const RANKS = { debug: 0, info: 1, warning: 2, error: 3, critical: 4 };

/** Return the level of an event, by which it is filtered and coloured. */
export function levelOf({ type, data }) {
  if (type === "log") return data.level ?? "info";
  return type === "run.failed" || type.endsWith(".error") ? "error" : "info";
}

function kindOf({ type }) {
  const kind = type.split(".")[0];
  return kind === "agent" || kind === "tool" ? "step" : kind;
}

/** Return a function that tells whether an event passes: `{kind, level, text, step}`. */
export function filterOf({ kind = "", level = "", text = "", step = null }) {
  const wanted = text.trim().toLowerCase(), rank = RANKS[level] ?? 0;
  return (event) => {
    if (kind && kindOf(event) !== kind) return false;
    if (rank && (RANKS[levelOf(event)] ?? 1) < rank) return false;
    if (step && (Number(event.id) < step.first || (step.last !== null && Number(event.id) > step.last))) return false;
    return !wanted || textOf(event).toLowerCase().includes(wanted);
  };
}

function textOf(event) {
  return event.type === "log" ? String(event.data.message ?? "") : `${eventLine(event)} ${JSON.stringify(event.data)}`;
}
