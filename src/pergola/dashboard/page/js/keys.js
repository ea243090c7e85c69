// Keys that work everywhere on the page, except while someone types.

import { byId } from "./dom.js";
import { VIEWS, current, go } from "./route.js";

export function listenToKeys({ clearSearch }) {
  const dialog = byId("keys");
  byId("help").addEventListener("click", () => dialog.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || dialog.open) return;
    const isTyping = event.target.matches("input, textarea, select");
    if (event.key === "Escape") escape(clearSearch);
    else if (isTyping) return;
    else if (event.key === "/") byId("search").focus();
    else if (event.key === "?") dialog.showModal();
    else if (VIEWS[Number(event.key) - 1]) show(VIEWS[Number(event.key) - 1]);
    else return;
    event.preventDefault();
  });
}

function show(view) {
  go(view);
  byId("list").focus();
}

function escape(clearSearch) {
  const { view, id } = current();
  if (byId("search").value) clearSearch();
  else if (id) go(view);
  byId("list").focus();
}
