// The field to search in: its text is the query of all views.

import { byId } from "./dom.js";

const field = byId("search");

/** Return what is searched for. */
export const query = () => field.value.trim();

export function clearSearch() {
  field.value = "";
  field.dispatchEvent(new Event("input"));
}

/** Call a function for each change, and another one to go from the field into the list. */
export function onSearch(change, enter) {
  field.addEventListener("input", change);
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== "ArrowDown") return;
    event.preventDefault();
    enter();
  });
}
