// Where the page is: a view, and the object that is open, in the fragment of the address.

export const VIEWS = ["attention", "objects", "timeline"];

/** Return the view, the id of the open object or "", and what of it is open. */
export function current() {
  const [, view, id = "", part = ""] = location.hash.split("/");
  return { view: VIEWS.includes(view) ? view : "attention", id: decode(id), part };
}

/** Return the address of a view with an object. */
export function address(view, id = "", part = "") {
  return `#/${view}${id && `/${encodeURIComponent(id)}`}${part && `/${part}`}`;
}

/** Return the address of an object in the current view. */
export const objectAddress = (id, part = "") => address(current().view, id, part);

export function go(view, id = "", part = "") {
  location.hash = address(view, id, part);
}

/** Return the parts of an id, as requests name an object. */
export function subject(id) {
  const parts = id.split("/");
  const [kind, namespace, name] = parts.slice(-3);
  return { apiVersion: parts.slice(0, -3).join("/"), kind, namespace, name };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
