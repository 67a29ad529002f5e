// The list of a run's events, with filters and a search. It filters for some milliseconds per frame, so it never stalls.

import { h } from "../dom.js";
import { timeOfDay } from "../format.js";
import { VirtualList } from "../virtual_list.js";
import { KINDS, LEVELS, filterOf, levelOf } from "./event_filter.js";
import { eventLine } from "./event_text.js";

const ROW_HEIGHT_PX = 22;
const WORK_PER_FRAME_MS = 5;
// While events arrive faster than they are filtered.
const RENDER_INTERVAL_MS = 250;
const SEARCH_DELAY_MS = 200;
// The page keeps this many; of a longer run the oldest are dropped, the log still has them.
const MAX_EVENTS = 200000;
const DROPPED_AT_ONCE = 20000;
const ICONS = { agent: "◆", tool: "⚙", artifact: "▤", usage: "∑", run: "▸" };

export class EventLog {
  /** `onSelect(event)` is called with the event that the user picks. */
  constructor(onSelect) {
    Object.assign(this, { events: [], shown: [], scanned: 0, dropped: 0, scheduled: false, renderedAt: 0, filter: {} });
    this.passes = filterOf(this.filter);
    this.list = new VirtualList({
      label: "Events", rowHeight: ROW_HEIGHT_PX, follow: true,
      row: (index) => eventRow(this.shown[index]), onSelect: (index) => onSelect(this.shown[index]),
    });
    this.list.element.classList.add("events");
    this.count = h("span", { class: "quiet", role: "status" });
    this.stepButton = h("button", { type: "button", hidden: true, onclick: () => this.setFilter({ step: null }) });
    this.element = h("div", {}, this.controls(), this.list.element);
  }

  controls() {
    const select = (name, label, options) => h("select", {
      "aria-label": label, onchange: (event) => this.setFilter({ [name]: event.target.value }),
    }, options.map(([value, title]) => h("option", { value }, title)));
    let timer;
    const search = h("input", { type: "search", placeholder: "Search the events", "aria-label": "Search the events", oninput: () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.setFilter({ text: search.value }), SEARCH_DELAY_MS);
    } });
    return h("div", { class: "row filters" }, select("kind", "Kind", KINDS), select("level", "Level", LEVELS), search, this.stepButton, this.count);
  }

  /** Change a part of the filter. `step` limits the list to the events from the first to the last of a step. */
  setFilter(part) {
    Object.assign(this.filter, part);
    this.passes = filterOf(this.filter);
    const { step } = this.filter;
    this.stepButton.hidden = !step;
    if (step) {
      this.stepButton.textContent = `During ${step.kind === "task" ? step.parent.name : step.name} ✕`;
      this.stepButton.setAttribute("aria-label", "Show the events of all steps");
    }
    this.shown = [];
    this.scanned = 0;
    this.list.setCount(0);
    this.list.select(-1);
    this.schedule();
  }

  /** Add an event; it is shown with the next frame. */
  add(event) {
    this.events.push(event);
    if (this.events.length > MAX_EVENTS) this.drop(DROPPED_AT_ONCE);
    this.schedule();
  }

  drop(count) {
    const last = Number(this.events[count - 1].id);
    this.events.splice(0, count);
    this.dropped += count;
    this.scanned = Math.max(0, this.scanned - count);
    this.shown = this.shown.filter((event) => Number(event.id) > last);
    this.list.setCount(this.shown.length);
  }

  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    // Background tabs get no animation frames.
    const defer = document.hidden ? (work) => setTimeout(work, 100) : requestAnimationFrame;
    defer(() => { this.scheduled = false; this.work(); });
  }

  /** Filter events for some milliseconds, then show what passed. */
  work() {
    const until = performance.now() + WORK_PER_FRAME_MS;
    while (this.scanned < this.events.length && (this.scanned % 64 !== 0 || performance.now() < until)) {
      const event = this.events[this.scanned];
      if (this.passes(event)) this.shown.push(event);
      this.scanned += 1;
    }
    const now = performance.now(), behind = this.scanned < this.events.length;
    if (!behind || now - this.renderedAt > RENDER_INTERVAL_MS) {
      this.renderedAt = now;
      this.list.setCount(this.shown.length);
      this.count.textContent = this.countText();
    }
    if (behind) this.schedule();
  }

  countText() {
    const all = this.events.length, some = this.shown.length;
    const text = some === all ? `${all.toLocaleString()} event${all === 1 ? "" : "s"}` : `${some.toLocaleString()} of ${all.toLocaleString()} events`;
    return this.dropped ? `${text}; the first ${this.dropped.toLocaleString()} are not shown, use: crewyard logs --events` : text;
  }
}

function eventRow(event) {
  const { type, data } = event, [kind, action] = type.split("."), level = levelOf(event);
  const failed = ["error", "critical"].includes(level) || action === "failed";
  const icon = kind === "log" ? "" : ICONS[kind] ?? "•";
  return h("div", { class: `event ${kind in ICONS || kind === "log" ? kind : "other"}${failed ? " loud" : level === "warning" ? " warned" : ""}` },
    h("time", { datetime: data.timestamp }, timeOfDay(data.timestamp)),
    h("span", { class: "icon", "aria-hidden": "true" }, icon), h("span", { class: "what" }, eventLine(event)));
}
