// The list of a run's events. Renders a bounded number per frame, so ten thousand events do not block the page.

import { h } from "../dom.js";
import { timeOfDay, duration, shorten, size, formatValue } from "../format.js";

const EVENTS_PER_FRAME = 200;
const EVENTS_PER_BLOCK = 200;
const MAX_LINE_LENGTH = 300;
// Browsers become slow with more lines; the oldest are removed from the page, the log still has them.
const MAX_BLOCKS = 100;
const MAX_WAITING = EVENTS_PER_BLOCK * MAX_BLOCKS;

export class Timeline {
  constructor() {
    this.element = h("div", { class: "timeline", role: "log", tabindex: 0, "aria-label": "Events" });
    this.waiting = [];
    this.count = 0;
    this.dropped = 0;
    this.note = h("p", { class: "quiet", hidden: true });
    this.element.append(this.note);
    this.scheduled = false;
  }

  /** Add an event; it is rendered with the next frame. */
  add(message) {
    this.waiting.push(message);
    if (this.waiting.length > 2 * MAX_WAITING) {
      this.dropped += this.waiting.length - MAX_WAITING;
      this.waiting = this.waiting.slice(-MAX_WAITING);
    }
    this.schedule();
  }

  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    // Background tabs get no animation frames.
    const defer = document.hidden ? (work) => setTimeout(work, 100) : requestAnimationFrame;
    defer(() => { this.scheduled = false; this.write(); });
  }

  /** Render waiting events, as many as fit into a frame. */
  write() {
    const { element } = this;
    const atBottom = element.scrollTop + element.clientHeight >= element.scrollHeight - 40;
    for (const message of this.waiting.splice(0, EVENTS_PER_FRAME)) {
      const line = eventElement(message);
      if (line) {
        if (this.count % EVENTS_PER_BLOCK === 0) element.append(h("div", { class: "block" }));
        element.lastChild.append(line);
        this.count += 1;
      }
    }
    while (element.childElementCount > MAX_BLOCKS + 1) {
      this.dropped += element.children[1].childElementCount;
      element.children[1].remove();
    }
    if (this.dropped) {
      this.note.hidden = false;
      this.note.textContent = `The first ${this.dropped} events are not shown; use: crewyard logs --events`;
    }
    if (atBottom) element.scrollTop = element.scrollHeight;
    if (this.waiting.length) this.schedule();
  }
}

/** Return the element of an event; null for types that are not shown. */
export function eventElement({ type, data }) {
  const [kind, action] = type.split(".");
  if (type === "usage") return null;
  const isError = kind === "run" ? action === "failed" : ["error", "critical"].includes(data.level) || action === "error";
  const time = h("time", { datetime: data.timestamp }, timeOfDay(data.timestamp));
  const style = ["log", "agent", "tool", "artifact", "run"].includes(kind) ? kind : "other";
  return h("div", { class: `event ${style}${isError ? " loud" : ""}` }, time, h("div", { class: "what" }, describe(type, data)));
}

function describe(type, data) {
  switch (type) {
    case "log": return data.message ?? "";
    case "run.started": return "started";
    case "run.completed": return `completed after ${duration(data.duration_ms)}`;
    case "run.canceled": return `canceled after ${duration(data.duration_ms)}`;
    case "run.failed": return `failed after ${duration(data.duration_ms)}: ${data.error?.reason ?? ""}`;
    case "artifact": return `${data.name} (${size(data.size)}${data.partial ? ", partial" : ""})`;
    case "agent.started": return collapsible(`${data.agent} started: `, data.task);
    case "agent.completed": return collapsible(`${data.agent} completed: `, data.output);
    case "agent.error": return collapsible(`${data.agent} failed: `, data.error);
    case "tool.called": return collapsible(`${data.tool} ← `, data.input);
    case "tool.result": return collapsible(`${data.tool} → `, data.output);
    case "tool.error": return collapsible(`${data.tool} failed: `, data.error);
    default: {
      const { run_id: _run, timestamp: _time, ...rest } = data;
      return collapsible(`${type} `, rest);
    }
  }
}

function collapsible(title, value) {
  const text = shorten(value ?? "", MAX_LINE_LENGTH);
  if (text === value || formatValue(value ?? "").length <= MAX_LINE_LENGTH) return title + text;
  return [title, h("details", {}, h("summary", {}, text), h("pre", {}, formatValue(value)))];
}
