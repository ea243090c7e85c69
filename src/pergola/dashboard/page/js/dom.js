// Elements from values. Text is always text: nothing here parses markup.

const SVG = "http://www.w3.org/2000/svg";

/** Return an element with attributes and children; attributes of undefined or false are left out. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Return the same in an SVG. */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** Return the mark of a state: a shape and a colour, with its name for screen readers. */
export function mark(state) {
  return h("span", { class: `mark ${state || "none"}`, role: "img", "aria-label": state || "unknown" });
}

/** Return a number with its noun. */
export const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

export const byId = (id) => document.getElementById(id);

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false && child !== ""));
  return element;
}
