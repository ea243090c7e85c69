// What the page says instead of an empty list: also what was checked, since silence proves nothing.

import { ATTENTION, FOUND } from "./attention.js";
import { counted, h } from "./dom.js";
import { address, current } from "./route.js";
import { clock } from "./time.js";
import { MOMENTS } from "./timeline.js";
import { TREE } from "./tree.js";

const TEXTS = new Map([
  [ATTENTION, "Nothing needs attention."],
  [FOUND, "Nothing was found."],
  [MOMENTS, "Nothing has happened in the last hour."],
  [TREE, "There are no objects that Pergola serves."],
]);

/** Return the paragraphs about an empty list; `hidden` is the number of rows behind filters. */
export function nothing(kind, store, hidden) {
  if (kind === ATTENTION && hidden) {
    const all = h("a", { href: address(current().view, "", "", new URLSearchParams()) }, `Show all ${hidden}`);
    return [h("p", { class: "headline" }, "Nothing that needs attention matches the filters."), h("p", {}, all)];
  }
  const headline = h("p", { class: "headline" }, TEXTS.get(kind));
  return kind === ATTENTION ? [headline, h("p", {}, checked(store)), h("p", {}, lastChange(store))] : [headline];
}

function checked({ cards }) {
  const counts = new Map();
  for (const { kind } of cards.values()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const parts = [...counts].sort(([, a], [, b]) => b - a).map(([kind, count]) => counted(count, kind));
  return parts.length ? `Checked: ${parts.join(", ")}.` : "There are no objects to check.";
}

function lastChange({ opened, changed }) {
  if (changed) return `The last change was seen at ${clock(changed)}.`;
  return `No change was seen since ${clock(opened)}, when the page was opened.`;
}
