// The tree: Gardens with their components, and namespaces with their objects.

import { lasting } from "./time.js";
import { read } from "./stream.js";
import { subject } from "./route.js";
import { short, treeRow } from "./rows.js";

export const TREE = { height: short, role: "tree", rowRole: "treeitem", label: "Objects", draw: treeRow };

const GARDEN = "operator.gardener.cloud/v1alpha1/Garden/";
const RANK = ["trouble", "deleting", "progressing", "ignored", "healthy"];
const MANAGED = "ManagedResource";

export class Tree {
  #open = new Set();
  #objects = new Map();
  #components = new Map();
  #flows = new Map();

  constructor(store, onChange) {
    this.store = store;
    this.onChange = onChange;
  }

  /** Return the visible nodes in order. */
  rows() {
    const groups = new Map();
    const gardens = [];
    for (const card of this.store.cards.values()) {
      if (card.id.startsWith(GARDEN)) {
        gardens.push(card);
        continue;
      }
      const group = card.namespace || "the whole cluster";
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(card);
    }
    const names = [...groups.keys()].sort((a, b) => Number(groups.get(b)[0].namespace === "") - Number(groups.get(a)[0].namespace === "") || (a < b ? -1 : 1));
    return [
      ...gardens.flatMap((garden) => this.#garden(garden)),
      ...names.flatMap((name) => this.#group(name, groups.get(name))),
    ];
  }

  /** Unfold or fold a node; the other of the two if `isOpen` is not given. */
  fold(node, isOpen = !node.isOpen) {
    if (!node.canUnfold || isOpen === node.isOpen) return;
    if (isOpen) this.#unfold(node);
    else this.#close(node);
    this.onChange();
  }

  /** Forget what was read about objects that have changed. */
  forget(changed) {
    for (const id of changed) if (this.#objects.has(id)) this.#read(id);
  }

  #unfold(node) {
    this.#open.add(node.id);
    if (node.id.startsWith(GARDEN)) this.#follow(node.id);
    else if (node.card?.kind === MANAGED) this.#read(node.cardId);
  }

  #close(node) {
    this.#open.delete(node.id);
    this.#flows.get(node.id)?.close();
    this.#flows.delete(node.id);
  }

  #garden(card) {
    const node = { ...this.#node(card, 1), isGroup: true, canUnfold: true };
    if (!node.isOpen) return [node];
    const components = this.#components.get(card.id);
    if (typeof components === "string") return [node, note(card.id, 2, components)];
    return [node, ...[...components].flatMap(([name, part]) => this.#component(card.id, name, part))];
  }

  #component(garden, name, { states, objects }) {
    const id = `${garden}#${name}`;
    const isOpen = this.#open.has(id);
    const node = { id, name, level: 2, state: worst(states), canUnfold: objects.length > 0, isOpen, note: "component" };
    const inner = objects.flatMap((object) => this.#known(object, 3, id));
    return isOpen ? [node, ...inner] : [node];
  }

  #known(id, level, parent) {
    const card = this.store.cards.get(id);
    if (card) return this.#cardNodes(card, level, parent);
    const { kind, namespace, name } = subject(id);
    return [{ id: `${parent}>${id}`, cardId: id, name, note: namespace ? `${kind} in ${namespace}` : kind, level, state: "" }];
  }

  #group(name, cards) {
    const id = `namespace ${name}`;
    const isOpen = this.#open.has(id);
    const bad = cards.filter(({ state }) => state !== "healthy" && state !== "ignored").length;
    const node = { id, name, level: 1, isGroup: true, canUnfold: true, isOpen, state: worst(cards.map(({ state }) => state)), note: `${cards.length} objects`, side: bad ? `${bad} not healthy` : "" };
    if (!isOpen) return [node];
    const sorted = cards.sort((a, b) => (a.kind === b.kind ? (a.name < b.name ? -1 : 1) : a.kind < b.kind ? -1 : 1));
    return [node, ...sorted.flatMap((card) => this.#cardNodes(card, 2, ""))];
  }

  #cardNodes(card, level, parent) {
    const node = this.#node(card, level, parent);
    if (!node.isOpen) return [node];
    const objects = this.#objects.get(card.id);
    if (typeof objects === "string") return [node, note(node.id, level + 1, objects)];
    return [node, ...objects.map((object) => ({
      id: `${node.id}>${object.id}`,
      cardId: object.id,
      name: object.name,
      note: [object.kind, object.namespace !== card.namespace && object.namespace && `in ${object.namespace}`, object.problem].filter(Boolean).join(" · "),
      level: level + 1,
      state: object.state,
    }))];
  }

  #node(card, level, parent = "") {
    const id = parent ? `${parent}>${card.id}` : card.id;
    return {
      id,
      cardId: card.id,
      card,
      name: card.name,
      note: card.kind === MANAGED ? `${MANAGED} · ${card.objects} objects` : card.kind,
      level,
      state: card.state,
      canUnfold: card.kind === MANAGED && card.objects > 0,
      isOpen: this.#open.has(id),
      side: card.state === "healthy" ? "" : lasting(card.since),
    };
  }

  async #read(id) {
    if (!this.#objects.has(id)) this.#objects.set(id, "reading …");
    try {
      this.#objects.set(id, (await read("/api/object", subject(id))).objects);
    } catch (error) {
      this.#objects.set(id, error.message);
    }
    this.onChange();
  }

  #follow(id) {
    this.#components.set(id, "reading the components …");
    const source = new EventSource(`/api/flow?${new URLSearchParams(subject(id))}`);
    this.#flows.set(id, source);
    source.addEventListener("flow", (event) => {
      this.#components.set(id, componentsOf(JSON.parse(event.data).tasks));
      this.onChange();
    });
    source.addEventListener("problem", (event) => {
      this.#components.set(id, JSON.parse(event.data).text);
      source.close();
      this.onChange();
    });
    source.addEventListener("end", () => source.close());
  }
}

const STATES = { done: "healthy", skipped: "ignored", running: "progressing", pending: "ignored", failed: "trouble", unhealthy: "trouble" };

function componentsOf(tasks) {
  const components = new Map();
  for (const task of tasks.filter(({ component, state }) => component && state !== "skipped")) {
    const part = components.get(task.component) ?? { states: [], objects: [] };
    part.states.push(STATES[task.state]);
    for (const id of task.objects) if (!part.objects.includes(id)) part.objects.push(id);
    components.set(task.component, part);
  }
  return components;
}

function worst(states) {
  return RANK.find((state) => states.includes(state)) ?? "";
}

function note(parent, level, text) {
  return { id: `${parent}!`, name: text, level };
}
