// Rows of the lists.

import { counted, h, mark } from "./dom.js";
import { clock, lasting } from "./time.js";

const PHONE = matchMedia("(max-width: 760px)");

/** Return the height of rows with a text of several lines, which is more on a narrow screen. */
export const tall = () => (PHONE.matches ? 118 : 84);
export const medium = () => (PHONE.matches ? 118 : 64);
export const short = () => 34;

/** Call a function when rows have another height. */
export function onHeight(change) {
  PHONE.addEventListener("change", change);
}

/** Return the row of a card with its problem. */
export function cardRow(card) {
  return h("div", { class: "row tall" },
    mark(card.state),
    h("div", { class: "lines" },
      h("div", { class: "line" },
        h("span", { class: "name" }, card.name),
        h("span", { class: "where" }, where(card)),
      ),
      h("div", { class: "clamped text" }, card.problem || "as it should be"),
    ),
    h("span", { class: "age" }, lasting(card.since)),
  );
}

/** Return the row of a card, or of several ones with the same cause. */
export function attentionRow(item) {
  const row = item.members ? causeRow(item) : cardRow(item);
  row.setAttribute("aria-level", item.level ?? 1);
  if (item.level) row.classList.add("inner");
  return row;
}

function causeRow({ members, isOpen, state, since, problem }) {
  const kinds = new Set(members.map(({ kind }) => kind));
  const what = counted(members.length, kinds.size === 1 ? [...kinds][0] : "object");
  const row = h("div", { class: "row tall" },
    mark(state),
    h("div", { class: "lines" },
      h("div", { class: "line" },
        h("span", { class: "fold", "aria-hidden": "true" }, isOpen ? "▾" : "▸"),
        h("span", { class: "name" }, what),
        h("span", { class: "where" }, members.map(({ name }) => name).join(", ")),
      ),
      h("div", { class: "clamped text" }, problem),
    ),
    h("span", { class: "age" }, lasting(since)),
  );
  row.setAttribute("aria-expanded", isOpen);
  return row;
}

/** Return the row of a moment. */
export function momentRow(moment) {
  return h("div", { class: "row tall moment" },
    mark(moment.state),
    h("div", { class: "lines" },
      h("div", { class: "line" },
        h("span", { class: "name" }, moment.title),
        h("span", { class: "where" }, `${moment.kind} ${path(moment)}`),
      ),
      h("div", { class: "clamped text" }, moment.count > 1 ? `${moment.text} (${moment.count} times)` : moment.text),
    ),
    h("span", { class: "age" }, clock(moment.time)),
  );
}

/** Return the row of a node of the tree. */
export function treeRow(node) {
  const row = h("div", { class: `row small${node.isGroup ? " group" : ""}`, "aria-level": node.level },
    node.state === undefined ? h("span") : mark(node.state),
    h("div", { class: "line" },
      h("span", { class: "fold", "aria-hidden": "true" }, node.canUnfold ? (node.isOpen ? "▾" : "▸") : ""),
      h("span", { class: "name" }, node.name),
      h("span", { class: "where" }, node.note || ""),
    ),
    h("span", { class: "age" }, node.side || ""),
  );
  row.style.paddingLeft = `${node.level * 1.25 - 0.25}rem`;
  if (node.canUnfold) row.setAttribute("aria-expanded", node.isOpen);
  return row;
}

const path = ({ namespace, name }) => (namespace ? `${namespace}/${name}` : name);
const where = ({ kind, namespace }) => (namespace ? `${kind} in ${namespace}` : kind);
