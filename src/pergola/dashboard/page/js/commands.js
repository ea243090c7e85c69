// Commands about an object, to copy.

import { h } from "./dom.js";
import { subject } from "./route.js";

const SHOWN = 1500;

/** Return the commands as text with a button each. */
export function commands(id) {
  const { apiVersion, kind, namespace, name } = subject(id);
  const [group] = apiVersion.includes("/") ? apiVersion.split("/") : [""];
  const object = `${kind.toLowerCase()}${group && `.${group}`}/${name}`;
  const where = namespace ? ` -n ${namespace}` : "";
  const texts = [`pergola why ${object}${where}`, `kubectl get ${object}${where} -o yaml`, `kubectl describe ${object}${where}`];
  return h("ul", { class: "commands" }, texts.map((text) => h("li", {}, h("code", {}, text), copyButton(text))));
}

function copyButton(text) {
  return h("button", { type: "button", "aria-label": `Copy: ${text}`, click: ({ target }) => copy(target, text) }, "Copy");
}

async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => (button.textContent = "Copy"), SHOWN);
}
