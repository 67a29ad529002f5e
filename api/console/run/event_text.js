// Events of a run as text: one line for the list, all of it for the panel.

import { duration, shorten, size } from "../format.js";
import { callDuration } from "./steps.js";

const MAX_LINE_LENGTH = 600;

/** Return an event on one line. */
export function eventLine({ type, data }) {
  switch (type) {
    case "log": return shortLine(data.message ?? "");
    case "run.started": return "started";
    case "run.completed": return `completed after ${duration(data.duration_ms)}`;
    case "run.canceled": return `canceled after ${duration(data.duration_ms)}`;
    case "run.failed": return `failed after ${duration(data.duration_ms)}: ${data.error?.reason ?? ""}`;
    case "artifact": return `${data.name} (${size(data.size)}${data.partial ? ", partial" : ""})`;
    case "agent.started": return `${data.agent} started: ${line(data.task)}`;
    case "agent.completed": return `${data.agent} completed: ${line(data.output)}`;
    case "agent.error": return `${data.agent} failed: ${line(data.error)}`;
    case "tool.called": return `${data.tool} ← ${line(data.input)}`;
    case "tool.result": return `${data.tool} → ${line(data.output)}`;
    case "tool.error": return `${data.tool} failed: ${line(data.error)}`;
    case "budget.warning": return `warning: ${data.message}`;
    case "usage": return usageLine(data);
    default: return `${type} ${line(fieldsOf(data))}`;
  }
}

function usageLine(data) {
  const took = callDuration(data), tokens = `${data.model || "model"}: ${data.prompt_tokens} tokens in, ${data.completion_tokens} out`;
  return took === null ? tokens : `${tokens}, ${duration(took)}`;
}

/** Return the data of an event without the fields that each event has. */
export function fieldsOf({ run_id: _run, timestamp: _time, ...fields }) {
  return fields;
}

function line(value) {
  return shorten(value ?? "", MAX_LINE_LENGTH);
}

/** Keep the spaces of a printed line: tables and tracebacks need them. */
function shortLine(text) {
  const found = String(text);
  return found.length > MAX_LINE_LENGTH ? `${found.slice(0, MAX_LINE_LENGTH - 1)}…` : found;
}
