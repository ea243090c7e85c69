// The start page: everything that needs attention, and the results of a search.

import { attentionRow, cardRow, tall } from "./rows.js";

const ORDER = ["trouble", "deleting", "progressing", "ignored", "healthy"];

export const ATTENTION = { height: tall, role: "tree", rowRole: "treeitem", label: "Objects that need attention", draw: attentionRow };
export const FOUND = { height: tall, role: "listbox", rowRole: "option", label: "Search results", draw: cardRow };

/** Return the cards with all words of a query, those in trouble first. */
export function found(store, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return [...store.cards.values()]
    .filter((card) => words.every((word) => card.text.includes(word)))
    .sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state) || (a.id < b.id ? -1 : 1));
}

/** The causes of which all objects are shown. */
export class Causes {
  #open = new Set();

  constructor(onChange) {
    this.onChange = onChange;
  }

  /** Return cards as rows; those with the same problem are one row until it is unfolded. */
  rows(cards) {
    const causes = new Map();
    for (const card of cards) {
      const cause = card.problem || card.id;
      if (causes.has(cause)) causes.get(cause).push(card);
      else causes.set(cause, [card]);
    }
    return [...causes].flatMap(([cause, members]) => (members.length === 1 ? members : this.#group(cause, members)));
  }

  /** Unfold or fold a cause; the other of the two if `isOpen` is not given. */
  fold(group, isOpen = !group.isOpen) {
    if (isOpen) this.#open.add(group.id);
    else this.#open.delete(group.id);
    this.onChange();
  }

  #group(cause, members) {
    const id = `cause ${cause}`;
    const isOpen = this.#open.has(id);
    const [{ state, since, problem }] = members;
    const group = { id, members, isOpen, state, since, problem };
    return isOpen ? [group, ...members.map((card) => ({ ...card, level: 2 }))] : [group];
  }
}
