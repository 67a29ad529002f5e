// The timeline of a run: a row per agent, task, tool and timed model call with its bar, duration and tokens, live.

import { h } from "../dom.js";
import { duration, shorten } from "../format.js";
import { VirtualList } from "../virtual_list.js";
import { rowsOf } from "./steps.js";

const ROW_HEIGHT_PX = 30;
const MIN_BAR_PERCENT = 0.4;
const KIND_ICONS = { run: "▸", agent: "◆", task: "☰", tool: "⚙", model: "∑" };

export class Timeline {
  /** `onSelect(step)` is called with the step that the user picks. */
  constructor(steps, onSelect) {
    Object.assign(this, { steps, collapsed: new Set(), rows: [], now: Date.now() });
    this.list = new VirtualList({
      label: "Timeline", rowHeight: ROW_HEIGHT_PX, roles: ["tree", "treeitem"], row: (index) => this.row(index),
      onSelect: (index) => onSelect(this.rows[index].step), onKey: (key, index) => this.handleKey(key, index),
    });
    this.list.element.classList.add("steps");
    this.element = h("div", {}, h("div", { class: "step head", "aria-hidden": "true" },
      h("span", {}, "Step"), h("span", { class: "number" }, "Tokens"), h("span", { class: "number" }, "Duration"), h("span", {}, "")),
    this.list.element);
  }

  /** Show the tree as it is now; `now` is the end of bars that are still running. */
  render(now) {
    this.now = now;
    this.rows = rowsOf(this.steps.run, (step) => this.collapsed.has(step));
    this.list.element.style.height = `${Math.min(14, Math.max(1, this.rows.length)) * ROW_HEIGHT_PX + 2}px`;
    this.list.setCount(this.rows.length);
  }

  toggle(step, collapsed) {
    if (collapsed) this.collapsed.add(step);
    else this.collapsed.delete(step);
    this.render(this.now);
    return true;
  }

  handleKey(key, index) {
    const row = this.rows[index];
    if (!row?.expandable) return false;
    if (key === "ArrowLeft") return this.toggle(row.step, true);
    return key === "ArrowRight" ? this.toggle(row.step, false) : false;
  }

  row(index) {
    const { step, level, name, text, kind, expandable } = this.rows[index], collapsed = this.collapsed.has(step);
    const tokens = step.promptTokens + step.completionTokens;
    const end = step.end ?? this.now, took = step.start === null ? null : Math.max(0, end - step.start);
    const label = h("span", { class: "label" },
      h("span", { class: "toggle", "aria-hidden": "true", onclick: (event) => {
        event.stopPropagation();
        if (expandable) this.toggle(step, !collapsed);
      } }, expandable ? (collapsed ? "▸" : "▾") : ""),
      h("span", { class: `icon ${kind}`, "aria-hidden": "true" }, KIND_ICONS[kind]), h("b", {}, shorten(name, 200)),
      text && h("span", { class: "quiet" }, shorten(text, 200)));
    label.style.paddingLeft = `${(level - 1) * 16}px`;
    const row = h("div", { class: `step ${step.status}`, "aria-level": level, "aria-expanded": expandable ? String(!collapsed) : null,
      "aria-label": `${kind} ${name} ${text}, ${step.status}, ${duration(took)}${tokens ? `, ${tokens} tokens` : ""}` },
    label, h("span", { class: "number" }, tokens ? tokens.toLocaleString() : ""), h("span", { class: "number" }, duration(took)),
    h("span", { class: "track" }, this.bar(step, end)));
    return row;
  }

  bar(step, end) {
    const { run } = this.steps;
    if (step.start === null || run.start === null) return null;
    const whole = Math.max(1, (run.end ?? this.now) - run.start), percent = (time) => Math.min(100, Math.max(0, (time / whole) * 100));
    const left = Math.min(percent(step.start - run.start), 100 - MIN_BAR_PERCENT);
    const bar = h("span", { class: "bar" });
    bar.style.left = `${left}%`;
    bar.style.width = `${Math.min(100 - left, Math.max(MIN_BAR_PERCENT, percent(end - step.start)))}%`;
    return bar;
  }
}
