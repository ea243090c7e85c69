// The start page: everything that needs attention, and the results of a search.

import { cardRow, tall } from "./rows.js";

const ORDER = ["trouble", "deleting", "progressing", "ignored", "healthy"];

export const ATTENTION = { height: tall, role: "listbox", rowRole: "option", label: "Objects that need attention", draw: cardRow };
export const FOUND = { ...ATTENTION, label: "Search results" };

/** Return the cards with all words of a query, those in trouble first. */
export function found(store, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return [...store.cards.values()]
    .filter((card) => words.every((word) => card.text.includes(word)))
    .sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state) || (a.id < b.id ? -1 : 1));
}
