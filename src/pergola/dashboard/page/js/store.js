// What the server has sent: objects as cards, and moments of the time line.

import { now } from "./time.js";

const HOUR = 3600 * 1000;

export class Store extends EventTarget {
  cards = new Map();
  moments = new Map();
  opened = undefined;
  changed = undefined;

  /** Take a message of the stream; `isAll` says that nothing else exists. */
  apply({ items, gone }, isAll) {
    if (isAll) this.opened ??= now();
    else this.changed = now();
    if (isAll) {
      this.cards.clear();
      this.moments.clear();
    }
    const changed = new Set(gone);
    for (const item of items) {
      changed.add(item.id);
      if (item.about === undefined) this.cards.set(item.id, prepared(item));
      else this.moments.set(item.id, item);
    }
    for (const id of gone) {
      this.cards.delete(id);
      this.moments.delete(id);
    }
    this.dispatchEvent(new CustomEvent("change", { detail: { changed, isAll } }));
  }

  /** Return the cards that need attention, those that have needed it longest first. */
  attention() {
    const time = now();
    return [...this.cards.values()].filter((card) => card.dueTime <= time).sort(byAge);
  }

  /** Return the moments of the last hour, the latest first; of one object, if it is given. */
  timeline(about) {
    const oldest = now() - HOUR;
    return [...this.moments.values()]
      .filter((moment) => (!about || moment.about === about) && Date.parse(moment.time) >= oldest)
      .sort((a, b) => (a.time < b.time ? 1 : a.time > b.time ? -1 : 0));
  }
}

function byAge(a, b) {
  if (a.since !== b.since) return a.since < b.since ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}

/** Add what every draw needs: the text to search in, and the time as a number. */
function prepared(card) {
  card.dueTime = Date.parse(card.due); // not a number, and so never, if the state may last
  card.text = `${card.namespace}/${card.name} ${card.kind} ${card.problem}`.toLowerCase();
  return card;
}
