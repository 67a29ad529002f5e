// A run's events, as people read them. Written once a frame, so that ten thousand at once block nothing for long.

import { h } from "./dom.js";
import { clock, duration, short, size, whole } from "./format.js";

const A_FRAME = 200;
const A_BLOCK = 200;
const LONG = 300;
// More than that many lines no browser holds for long; the first ones go, and the log has them.
const MOST_BLOCKS = 100;
const MOST_WAITING = A_BLOCK * MOST_BLOCKS;

export class Timeline {
  constructor() {
    this.element = h("div", { class: "timeline", role: "log", tabindex: 0, "aria-label": "Events" });
    this.waiting = [];
    this.count = 0;
    this.left = 0;
    this.note = h("p", { class: "quiet", hidden: true });
    this.element.append(this.note);
    this.planned = false;
  }

  /** Adds an event; it is seen with the next frame. */
  add(message) {
    this.waiting.push(message);
    if (this.waiting.length > 2 * MOST_WAITING) {
      this.left += this.waiting.length - MOST_WAITING;
      this.waiting = this.waiting.slice(-MOST_WAITING);
    }
    this.plan();
  }

  plan() {
    if (this.planned) return;
    this.planned = true;
    // A tab in the background has no frames.
    const later = document.hidden ? (work) => setTimeout(work, 100) : requestAnimationFrame;
    later(() => { this.planned = false; this.write(); });
  }

  /** Writes what waits, as much as fits into a frame. */
  write() {
    const { element } = this;
    const down = element.scrollTop + element.clientHeight >= element.scrollHeight - 40;
    for (const message of this.waiting.splice(0, A_FRAME)) {
      const line = shown(message);
      if (line) {
        if (this.count % A_BLOCK === 0) element.append(h("div", { class: "block" }));
        element.lastChild.append(line);
        this.count += 1;
      }
    }
    while (element.childElementCount > MOST_BLOCKS + 1) {
      this.left += element.children[1].childElementCount;
      element.children[1].remove();
    }
    if (this.left) {
      this.note.hidden = false;
      this.note.textContent = `The first ${this.left} events are not shown; crewyard logs --events has them.`;
    }
    if (down) element.scrollTop = element.scrollHeight;
    if (this.waiting.length) this.plan();
  }
}

/** The element of an event; null for one that is not worth a line. */
export function shown({ type, data }) {
  const [kind, word] = type.split(".");
  if (type === "usage") return null;
  const loud = kind === "run" ? word === "failed" : ["error", "critical"].includes(data.level) || word === "error";
  const time = h("time", { datetime: data.timestamp }, clock(data.timestamp));
  const style = ["log", "agent", "tool", "artifact", "run"].includes(kind) ? kind : "other";
  return h("div", { class: `event ${style}${loud ? " loud" : ""}` }, time, h("div", { class: "what" }, what(type, data)));
}

function what(type, data) {
  switch (type) {
    case "log": return data.message ?? "";
    case "run.started": return "started";
    case "run.completed": return `completed after ${duration(data.duration_ms)}`;
    case "run.canceled": return `canceled after ${duration(data.duration_ms)}`;
    case "run.failed": return `failed after ${duration(data.duration_ms)}: ${data.error?.reason ?? ""}`;
    case "artifact": return `${data.name} (${size(data.size)}${data.partial ? ", partial" : ""})`;
    case "agent.started": return folded(`${data.agent} begins: `, data.task);
    case "agent.completed": return folded(`${data.agent} is done: `, data.output);
    case "agent.error": return folded(`${data.agent} failed: `, data.error);
    case "tool.called": return folded(`${data.tool} ← `, data.input);
    case "tool.result": return folded(`${data.tool} → `, data.output);
    case "tool.error": return folded(`${data.tool} failed: `, data.error);
    default: {
      const { run_id: _run, timestamp: _time, ...rest } = data;
      return folded(`${type} `, rest);
    }
  }
}

function folded(title, value) {
  const text = short(value ?? "", LONG);
  if (text === value || whole(value ?? "").length <= LONG) return title + text;
  return [title, h("details", {}, h("summary", {}, text), h("pre", {}, whole(value)))];
}
