// A list of any length, of which only the visible rows are elements.

import { h } from "./dom.js";

const BEYOND = 6;

export class VirtualList {
  #items = [];
  #rows = new Map();
  #active = "";
  #chosen = "";
  #spacer = h("div", { class: "spacer", role: "presentation" });
  #isDue = false;
  #kind = {};
  #height = 0;

  /** `kind` has `height()`, `role`, `rowRole`, `label`, and `draw(item)`, which returns a row. */
  constructor(element, { onOpen, onFold }) {
    this.element = element;
    this.onOpen = onOpen;
    this.onFold = onFold;
    element.append(this.#spacer);
    element.addEventListener("scroll", () => this.#soon(), { passive: true });
    element.addEventListener("keydown", (event) => this.#key(event));
    element.addEventListener("click", (event) => this.#click(event));
    new ResizeObserver(() => this.#soon()).observe(element);
  }

  /** Show items of a kind; all rows are drawn again. */
  show(kind, items) {
    if (kind !== this.#kind) {
      this.element.scrollTop = 0;
      this.#active = "";
      this.element.setAttribute("role", kind.role);
      this.element.setAttribute("aria-label", kind.label);
    }
    this.#kind = kind;
    this.#height = kind.height();
    this.#items = items;
    this.#spacer.style.height = `${items.length * this.#height}px`;
    this.#clear();
    this.#soon();
  }

  /** Draw the visible rows again, since ages have changed. */
  refresh() {
    this.#clear();
    this.#soon();
  }

  choose(id) {
    this.#chosen = id;
    if (id && this.#index(id) >= 0) this.#active = id;
    this.refresh();
  }

  #clear() {
    for (const row of this.#rows.values()) row.remove();
    this.#rows.clear();
  }

  #soon() {
    if (this.#isDue) return;
    this.#isDue = true;
    requestAnimationFrame(() => {
      this.#isDue = false;
      this.#draw();
    });
  }

  #draw() {
    const height = this.#height;
    if (!height) return;
    const first = Math.max(0, Math.floor(this.element.scrollTop / height) - BEYOND);
    const last = Math.ceil((this.element.scrollTop + this.element.clientHeight) / height) + BEYOND;
    const visible = new Map(this.#items.slice(first, last).map((item, at) => [item.id, first + at]));
    for (const [id, row] of this.#rows) {
      if (!visible.has(id)) {
        row.remove();
        this.#rows.delete(id);
      }
    }
    for (const [id, index] of visible) if (!this.#rows.has(id)) this.#add(id, index);
    this.#mark();
  }

  #add(id, index) {
    const row = this.#kind.draw(this.#items[index]);
    row.dataset.id = id;
    row.id = `row-${index}`;
    row.setAttribute("role", this.#kind.rowRole);
    row.setAttribute("aria-setsize", this.#items.length);
    row.setAttribute("aria-posinset", index + 1);
    row.setAttribute("aria-selected", id === this.#chosen);
    row.style.height = `${this.#height}px`;
    row.style.transform = `translateY(${index * this.#height}px)`;
    this.#rows.set(id, row);
    this.element.append(row);
  }

  #mark() {
    for (const [id, row] of this.#rows) row.classList.toggle("active", id === this.#active);
    const row = this.#rows.get(this.#active);
    this.element.classList.toggle("marked", Boolean(row));
    if (row) this.element.setAttribute("aria-activedescendant", row.id);
    else this.element.removeAttribute("aria-activedescendant");
  }

  #index(id) {
    return this.#items.findIndex((item) => item.id === id);
  }

  #move(index) {
    const item = this.#items[Math.min(Math.max(index, 0), this.#items.length - 1)];
    if (!item) return;
    this.#active = item.id;
    const top = this.#index(item.id) * this.#height;
    const bottom = top + this.#height - this.element.clientHeight;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (bottom > this.element.scrollTop) this.element.scrollTop = bottom;
    this.#draw();
  }

  #key(event) {
    const at = this.#index(this.#active);
    const page = Math.floor(this.element.clientHeight / this.#height) || 1;
    const targets = {
      ArrowDown: at + 1,
      ArrowUp: at < 0 ? 0 : at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: this.#items.length - 1,
    };
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key in targets) this.#move(targets[event.key]);
    else if (at >= 0 && event.key === "Enter") this.onOpen(this.#items[at]);
    else if (at >= 0 && event.key === "ArrowRight") this.onFold(this.#items[at], true);
    else if (at >= 0 && event.key === "ArrowLeft") this.onFold(this.#items[at], false);
    else return;
    event.preventDefault();
  }

  #click(event) {
    const row = event.target.closest(".row");
    const item = row && this.#items[this.#index(row.dataset.id)];
    if (!item) return;
    this.#active = item.id;
    if (event.target.closest(".fold")) this.onFold(item);
    else this.onOpen(item);
    this.#mark();
  }
}
