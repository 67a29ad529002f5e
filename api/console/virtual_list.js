// A list of many rows of one height. Only the rows in view are elements, so a hundred thousand rows cost what forty do.

import { h } from "./dom.js";

const ROWS_BEYOND_VIEW = 12;
const FOLLOW_DISTANCE_PX = 40;
let created = 0;

export class VirtualList {
  /**
   * `row(index)` returns the element of a row, `onSelect(index)` is called by a click and by Enter, `onKey(key, index)`
   * returns whether it handled another key. `roles` are those of the list and its rows.
   */
  constructor({ label, rowHeight, row, onSelect, onKey = () => false, roles = ["listbox", "option"], follow = false }) {
    Object.assign(this, { rowHeight, row, onSelect, onKey, follow, role: roles[1], count: 0, active: -1, selected: -1, height: 0 });
    created += 1;
    this.prefix = `list-${created}`;
    this.space = h("div", { class: "space", role: "presentation" });
    this.element = h("div", {
      class: "list", role: roles[0], tabindex: 0, "aria-label": label,
      onscroll: () => this.scrolled(), onkeydown: (event) => this.handleKey(event), onclick: (event) => this.handleClick(event),
    }, this.space);
    this.resizes = new ResizeObserver(() => {
      this.height = this.element.clientHeight;
      this.render();
    });
    this.resizes.observe(this.element);
  }

  /** Show that many rows. A list that follows stays at its end if it was there. */
  setCount(count) {
    const { element } = this, { scrollTop } = element;
    const atEnd = scrollTop + this.height >= this.count * this.rowHeight - FOLLOW_DISTANCE_PX;
    this.count = count;
    this.active = Math.min(this.active, count - 1);
    this.space.style.height = `${count * this.rowHeight}px`;
    const end = Math.max(0, count * this.rowHeight - this.height), top = this.follow && atEnd ? end : Math.min(scrollTop, end);
    // Read before, written after: between them a read would make the browser lay out the page once more.
    this.render(top);
    if (top !== scrollTop) element.scrollTop = top;
  }

  /** Mark a row as the selected one. */
  select(index) {
    this.selected = index;
    this.active = index;
    this.render();
  }

  scrolled() {
    // The list's own scrolling is rendered already.
    if (this.element.scrollTop !== this.top) this.render();
  }

  render(top = this.element.scrollTop) {
    const { element, rowHeight } = this;
    this.top = top;
    const from = Math.max(0, Math.floor(top / rowHeight) - ROWS_BEYOND_VIEW);
    const to = Math.min(this.count, Math.ceil((top + this.height) / rowHeight) + ROWS_BEYOND_VIEW);
    const rows = [];
    for (let index = from; index < to; index += 1) rows.push(this.place(this.row(index), index));
    this.space.replaceChildren(...rows);
    if (this.active >= from && this.active < to) element.setAttribute("aria-activedescendant", `${this.prefix}-${this.active}`);
    else element.removeAttribute("aria-activedescendant");
  }

  place(row, index) {
    row.style.top = `${index * this.rowHeight}px`;
    row.style.height = `${this.rowHeight}px`;
    row.id = `${this.prefix}-${index}`;
    row.dataset.index = index;
    row.classList.toggle("current", index === this.active);
    row.setAttribute("role", this.role);
    row.setAttribute("aria-selected", String(index === this.selected));
    if (this.role === "option") {
      row.setAttribute("aria-posinset", String(index + 1));
      row.setAttribute("aria-setsize", String(this.count));
    }
    return row;
  }

  handleClick(event) {
    const row = event.target.closest("[data-index]");
    if (!row) return;
    this.select(Number(row.dataset.index));
    this.onSelect(this.selected);
  }

  handleKey(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.rowHeight) - 1);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.count, End: this.count };
    if (event.ctrlKey || event.metaKey || event.altKey || this.count === 0) return;
    if (event.key in moves) {
      this.active = Math.min(this.count - 1, Math.max(0, this.active + moves[event.key]));
      this.reveal(this.active);
    } else if (event.key === "Enter" && this.active >= 0) {
      this.select(this.active);
      this.onSelect(this.active);
    } else if (!this.onKey(event.key, this.active)) {
      return;
    }
    event.preventDefault();
  }

  reveal(index) {
    const { element, rowHeight } = this, top = index * rowHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + rowHeight > element.scrollTop + element.clientHeight) element.scrollTop = top + rowHeight - element.clientHeight;
    this.render();
  }

  /** Stop observing the list's size. */
  close() {
    this.resizes.disconnect();
  }
}
