// The details of one object: why, conditions, what is below it, its last hour, and the object.

import { commands } from "./commands.js";
import { counted, h, mark } from "./dom.js";
import { clock, lasting } from "./time.js";
import { current, address, objectAddress, subject } from "./route.js";
import { read } from "./stream.js";
import { Flow } from "./flow.js";
import { Sentences, explained } from "./why.js";

const ORIGIN = "resources.gardener.cloud/origin";
const MANAGED = "resources.gardener.cloud/v1alpha1/ManagedResource";
const SETTLED = 1000;
const MOST_MOMENTS = 50;

export class Details {
  #id = "";
  #part = "";
  #flow;
  #timer;

  constructor(element, store) {
    this.element = element;
    this.store = store;
  }

  /** Show an object, or a part of it: its flow or its network. */
  show(id, part) {
    if (id === this.#id && part === this.#part) return;
    this.#flow?.close();
    this.#flow = undefined;
    [this.#id, this.#part] = [id, part];
    this.element.hidden = !id;
    this.element.scrollTop = 0;
    if (!id) return;
    if (part === "flow") this.#showFlow();
    else if (part === "network") this.#showNetwork();
    else this.#read();
  }

  /** Read the object again soon, if it is one of those that have changed. */
  forget(changed) {
    if (!changed.has(this.#id) || this.#part) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#read(), SETTLED);
  }

  async #read() {
    const id = this.#id;
    if (!this.element.firstChild || this.element.firstChild.dataset.id !== id) this.#fill(id, [h("p", { class: "where" }, "reading …")]);
    const why = h("div", { class: "why" }, "asking …");
    const show = (found, said) => {
      if (id === this.#id && !this.#part) this.#fill(id, this.#sections(found, why, said), found.state);
    };
    const reason = this.#explain(id, why);
    try {
      const found = await read("/api/object", subject(id));
      show(found, new Sentences());
      show(found, await reason);
    } catch (error) {
      if (id === this.#id) this.#fill(id, [h("p", {}, error.message)]);
    }
  }

  /** Fill an element with the reason for an object's state; return the sentences in it. */
  async #explain(id, element) {
    try {
      const { elements, said } = explained(await read("/api/why", subject(id)));
      element.replaceChildren(...elements);
      return said;
    } catch (error) {
      element.textContent = error.message;
      return new Sentences();
    }
  }

  #fill(id, sections, state) {
    const { kind, namespace, name } = subject(id);
    const { view } = current();
    this.element.replaceChildren(h("article", { "data-id": id, class: this.#part === "flow" && "flowing" },
      h("div", { class: "top" },
        h("div", {},
          h("h2", {}, state ? [mark(state), " "] : "", name),
          h("p", { class: "where" }, namespace ? `${kind} in namespace ${namespace}` : kind),
        ),
        this.#part ? h("a", { href: objectAddress(id) }, "Details") : "",
        h("a", { href: address(view), "aria-label": "Close the details", class: "close" }, "✕"),
      ),
      ...sections,
    ));
  }

  #sections(found, why, said) {
    const moments = merged(this.store.timeline(found.id)).slice(0, MOST_MOMENTS);
    return [
      links(found),
      section("Why", why),
      found.conditions.length ? section("Conditions", h("ul", { class: "conditions" }, found.conditions.map((each) => condition(each, said)))) : "",
      found.objects.length ? section(counted(found.objects.length, "object"), h("ul", { class: "plain" }, found.objects.map((each) => managed(each, said)))) : "",
      moments.length ? section("Last hour", h("ul", { class: "conditions" }, moments.map((each) => momentItem(each, said)))) : "",
      section("Commands", commands(found.id)),
      h("details", {}, h("summary", {}, "The whole object"), h("pre", { class: "object", tabindex: 0 }, JSON.stringify(found.object, null, 2))),
    ];
  }

  #showFlow() {
    this.#flow = new Flow(this.#id);
    this.#fill(this.#id, [h("div", {}, this.#flow.note, this.#flow.meter, this.#flow.choice), this.#flow.frame, this.#flow.about]);
  }

  #showNetwork() {
    const { namespace, name, apiVersion, kind } = subject(this.#id);
    const image = h("img", { class: "network", alt: `Network of Infrastructure ${namespace}/${name} in AWS`, src: `/api/network.svg?${new URLSearchParams({ apiVersion, kind, namespace, name })}` });
    const problem = h("p", { class: "where", role: "status" }, "asking AWS …");
    image.addEventListener("load", () => problem.remove());
    image.addEventListener("error", async () => {
      image.remove();
      const answer = await fetch(image.src);
      problem.textContent = answer.ok ? "the picture cannot be shown" : await answer.text();
    });
    this.#fill(this.#id, [problem, h("div", { class: "scroll", tabindex: 0 }, image)]);
  }
}

function links({ id, object }) {
  const origin = object.metadata.annotations?.[ORIGIN]?.split(/[:]/).at(-1).split("/");
  const found = [
    ["Garden", "Infrastructure"].includes(object.kind) && h("a", { href: objectAddress(id, "flow") }, "Flow"),
    object.kind === "Infrastructure" && h("a", { href: objectAddress(id, "network") }, "Network"),
    origin?.length === 2 && h("a", { href: objectAddress(`${MANAGED}/${origin.join("/")}`) }, `From ManagedResource ${origin.join("/")}`),
  ].filter(Boolean);
  return found.length ? h("p", { class: "links" }, found) : "";
}

/** Return moments, the same ones as one with their number. */
function merged(moments) {
  const found = new Map();
  for (const moment of moments) {
    const same = `${moment.title} ${moment.text}`;
    const known = found.get(same);
    if (known) known.count += moment.count;
    else found.set(same, { ...moment });
  }
  return [...found.values()];
}

function section(title, ...content) {
  return h("section", {}, h("h3", {}, title), ...content);
}

function condition({ type, status, state, since, reason, message }, said) {
  return h("li", {},
    mark(state),
    h("span", {}, h("strong", {}, type), ` ${status}`, reason && ` · ${reason}`),
    h("span", { class: "age" }, lasting(since)),
    message && said.add(message) && h("span", { class: "text" }, message),
  );
}

function managed({ id, kind, namespace, name, state, problem }, said) {
  const isNew = problem && said.add(problem);
  return h("li", {}, h("a", { href: objectAddress(id) },
    mark(state),
    h("span", {}, name, " ", h("span", { class: "text" }, [namespace ? `${kind} in ${namespace}` : kind, isNew && problem].filter(Boolean).join(" · "))),
  ));
}

function momentItem({ time, state, title, text, count }, said) {
  const shown = said.add(text) ? text : "";
  return h("li", {},
    mark(state),
    h("span", {}, h("strong", {}, title)),
    h("span", { class: "age" }, clock(time)),
    h("span", { class: "text" }, count > 1 ? `${shown} (${count} times)`.trim() : shown),
  );
}
