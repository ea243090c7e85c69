// The filters of what needs attention: they are in the address, so that a link keeps them.

import { byId, h } from "./dom.js";
import { filters, setFilter } from "./route.js";

const FIELDS = ["namespace", "kind", "owner"];
const NONE = "-";
const UNNAMED = { namespace: "the whole cluster", owner: "not known" };

const fields = new Map(FIELDS.map((name) => [name, byId(`by-${name}`)]));
const grouping = byId("grouping");

/** Change the address with each filter; the page follows the address. */
export function listenToFilters() {
  for (const [name, field] of fields) field.addEventListener("change", () => setFilter(name, field.value));
  grouping.addEventListener("change", () => setFilter("grouped", grouping.checked ? "" : "no"));
}

/** Return whether objects with the same cause are one row. */
export const isGrouped = () => filters().get("grouped") !== "no";

/** Return the cards that match all filters. */
export function filtered(cards) {
  const chosen = FIELDS.map((name) => [name, filters().get(name)]).filter(([, value]) => value);
  return cards.filter((card) => chosen.every(([name, value]) => valueOf(card, name) === value));
}

/** Show the filters with the values of the cards; a chosen value stays even without one. */
export function showFilters(cards) {
  const chosen = filters();
  for (const [name, field] of fields) {
    const value = chosen.get(name) ?? "";
    const counts = new Map(value ? [[value, 0]] : []);
    for (const card of cards) counts.set(valueOf(card, name), (counts.get(valueOf(card, name)) ?? 0) + 1);
    const values = [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
    const shape = JSON.stringify(values);
    if (field.dataset.shape !== shape && field !== document.activeElement) {
      field.dataset.shape = shape;
      field.replaceChildren(h("option", { value: "" }, `every ${name}`), ...values.map(([each, count]) => h("option", { value: each }, `${each === NONE ? UNNAMED[name] : each} (${count})`)));
    }
    field.value = value;
  }
  grouping.checked = isGrouped();
}

const valueOf = (card, name) => card[name] || NONE;
