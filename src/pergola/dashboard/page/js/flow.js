// The flow graph of a Garden or an Infrastructure while it runs.

import { h, s } from "./dom.js";
import { drawn } from "./graph.js";
import { layers } from "./layers.js";
import { lasting } from "./time.js";
import { objectAddress, subject } from "./route.js";

const [WIDTH, HEIGHT, CELL_WIDTH, CELL_HEIGHT, TOP] = [224, 40, 264, 50, 34];

export class Flow {
  #source;
  #all = [];
  #tasks = new Map();
  #buttons = new Map();
  #paths = [];
  #chosen = "";
  #shape = "";

  constructor(id) {
    this.note = h("p", { class: "where", role: "status" }, "reading the tasks …");
    this.meter = h("progress", { class: "meter", max: 100, value: 0, "aria-label": "Progress" });
    this.active = h("input", { type: "checkbox", change: () => this.#arrange() });
    this.folded = h("input", { type: "checkbox", checked: true, change: () => this.#arrange() });
    this.choice = h("p", { class: "choice" },
      h("label", {}, this.active, " only running and failed tasks"),
      h("label", {}, this.folded, " finished tasks as one"),
    );
    this.graph = h("div", { class: "flow", tabindex: 0, role: "group", "aria-label": "Tasks of the flow", scroll: () => this.#hint() });
    this.frame = h("div", { class: "frame" }, this.graph, h("span", { class: "more", "aria-hidden": "true" }, "→"));
    new ResizeObserver(() => this.#hint()).observe(this.graph);
    this.about = h("div", { class: "about", "aria-live": "polite" }, "Choose a task to see what it does and waits for, and its lines to tasks in distant columns.");
    this.#source = new EventSource(`/api/flow?${new URLSearchParams(subject(id))}`);
    this.#source.addEventListener("flow", (event) => this.#show(JSON.parse(event.data)));
    this.#source.addEventListener("problem", (event) => this.#end(JSON.parse(event.data).text));
    this.#source.addEventListener("end", () => this.#end("the object is gone"));
  }

  close() {
    this.#source.close();
  }

  #end(text) {
    this.note.textContent = text;
    this.close();
  }

  #show({ note, operation, tasks }) {
    const shown = tasks.filter((task) => task.state !== "skipped");
    const skipped = tasks.length - shown.length;
    const counts = ["done", "running", "pending", "failed", "unhealthy"]
      .map((state) => [shown.filter((task) => task.state === state).length, state])
      .filter(([count]) => count)
      .map(([count, state]) => `${count} ${state}`);
    const doing = operation.type ? `${operation.type} ${operation.state}, ${operation.progress} %` : "No operation yet";
    this.note.textContent = [doing, counts.join(", "), skipped && `${skipped} skipped`, note].filter(Boolean).join(" · ");
    this.meter.value = operation.progress;
    this.#all = tasks;
    this.#arrange();
  }

  /** Draw what is chosen to be seen, again if it has changed. */
  #arrange() {
    const tasks = drawn(this.#all, { isActiveOnly: this.active.checked, isFolded: this.folded.checked });
    this.#tasks = new Map([...this.#all, ...tasks].map((task) => [task.name, task]));
    const shape = tasks.map(({ name, after }) => `${name}<${after}`).join("\n");
    if (shape !== this.#shape) this.#draw(tasks);
    this.#shape = shape;
    for (const [name, button] of this.#buttons) {
      const { state } = this.#tasks.get(name);
      button.className = `task ${state}`;
      button.title = `${name}: ${state}`;
      button.setAttribute("aria-label", `${name}: ${state}`);
    }
    if (this.#chosen) this.#explain();
  }

  #draw(tasks) {
    const isFirst = this.#buttons.size === 0;
    const { placed, bands } = layers(tasks);
    const cells = [...placed.values()];
    const width = Math.max(...cells.map(({ column }) => column + 1), 1) * CELL_WIDTH;
    const height = Math.max(...cells.map(({ row }) => row + 1), 1) * CELL_HEIGHT + TOP;
    this.#paths = cells.flatMap(({ task }) => task.after.filter((name) => placed.has(name)).map((name) => edge(placed.get(name), placed.get(task.name))));
    this.#buttons = new Map(cells.map((cell) => [cell.task.name, this.#button(cell)]));
    this.graph.replaceChildren(
      s("svg", { width, height, "aria-hidden": "true" }, this.#paths.map(({ path }) => path)),
      ...bands.map(band),
      ...this.#buttons.values(),
    );
    if (isFirst) this.#lookAtRunning(placed);
    requestAnimationFrame(() => this.#hint());
  }

  /** Tell whether there is more to the right. */
  #hint() {
    const { scrollLeft, clientWidth, scrollWidth } = this.graph;
    this.frame.classList.toggle("cut", scrollLeft + clientWidth < scrollWidth - 1);
  }

  #button({ task, column, row }) {
    const button = h("button", { type: "button", "aria-pressed": "false", click: () => (task.members ? this.#unfold() : this.#choose(task.name)) }, h("span", {}, task.name));
    button.style.transform = `translate(${column * CELL_WIDTH}px, ${row * CELL_HEIGHT + TOP}px)`;
    return button;
  }

  #unfold() {
    this.folded.checked = false;
    this.#arrange();
    this.graph.querySelector(".task").focus();
  }

  #choose(name) {
    this.#buttons.get(this.#chosen)?.setAttribute("aria-pressed", "false");
    this.#chosen = name;
    this.#buttons.get(name)?.setAttribute("aria-pressed", "true");
    for (const { from, to, path } of this.#paths) path.classList.toggle("lit", from === name || to === name);
    this.#explain();
  }

  #explain() {
    const task = this.#tasks.get(this.#chosen);
    if (!task) return;
    this.about.replaceChildren(
      h("p", {}, h("strong", {}, task.name), `: ${task.state}`, task.since && ` for ${lasting(task.since)}`),
      task.why && h("p", {}, task.why),
      task.after.length ? h("p", { class: "where" }, `after ${task.after.join(", ")}`) : "",
      h("ul", { class: "plain" }, task.waitsFor.map((wait) => h("li", {},
        wait.id ? h("a", { href: objectAddress(wait.id) }, h("span"), h("span", {}, wait.subject)) : h("span", {}, wait.subject),
        h("p", { class: "text" }, `${wait.problem}${wait.since ? ` (${lasting(wait.since)})` : ""}`),
      ))),
    );
  }

  #lookAtRunning(placed) {
    const cell = [...placed.values()].find(({ task }) => task.state === "running" || task.state === "failed");
    if (!cell) return;
    requestAnimationFrame(() => this.graph.scrollTo(cell.column * CELL_WIDTH - CELL_WIDTH, cell.row * CELL_HEIGHT - CELL_HEIGHT));
  }
}

function edge(from, to) {
  const [x1, y1] = [from.column * CELL_WIDTH + WIDTH, from.row * CELL_HEIGHT + TOP + HEIGHT / 2];
  const [x2, y2] = [to.column * CELL_WIDTH, to.row * CELL_HEIGHT + TOP + HEIGHT / 2];
  const middle = x2 - (CELL_WIDTH - WIDTH) / 2;
  const isFar = to.column - from.column > 1; // such a line would cross other tasks
  const path = s("path", { class: isFar && "far", d: `M${x1} ${y1} C${middle} ${y1} ${x1 + 20} ${y2} ${x2} ${y2}` });
  return { from: from.task.name, to: to.task.name, path };
}

function band({ flow, column }) {
  const label = h("p", { class: "band" }, flow);
  label.style.transform = `translate(${column * CELL_WIDTH}px, 6px)`;
  return label;
}
