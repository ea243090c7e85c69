// Where the page is: a view, and the object that is open, in the fragment of the address.

export const VIEWS = ["attention", "objects", "timeline"];

/** Return the view, the id of the open object or "", and what of it is open. */
export function current() {
  const [, view, id = "", part = ""] = location.hash.split("?")[0].split("/");
  return { view: VIEWS.includes(view) ? view : "attention", id: decode(id), part };
}

/** Return the filters in the address. */
export function filters() {
  return new URLSearchParams(location.hash.split("?")[1] ?? "");
}

/** Return the address of a view with an object; the filters stay as they are. */
export function address(view, id = "", part = "", kept = filters()) {
  const query = kept.toString();
  return `#/${view}${id && `/${encodeURIComponent(id)}`}${part && `/${part}`}${query && `?${query}`}`;
}

/** Set a filter, or remove it if the value is empty; the address is replaced. */
export function setFilter(name, value) {
  const { view, id, part } = current();
  const changed = filters();
  if (value) changed.set(name, value);
  else changed.delete(name);
  location.replace(address(view, id, part, changed));
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
