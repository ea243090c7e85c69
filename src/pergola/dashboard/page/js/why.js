// Why an object is as it is: causes and the next step first, everything else folded.

import { h } from "./dom.js";
import { lasting } from "./time.js";

const CAUSES = { findings: "", waitsFor: "waits for ", deletionBlockedBy: "deletion waits for " };
const BACKGROUND = { wantedBy: "wanted by ", decisions: "decision: ", finalizers: "finalizer ", writers: "last writer " };
const LONG = 24; // in characters; shorter texts are part of others by chance
const EVIDENCE = { source: "from ", field: "field " };

/** Return the elements of an answer, and all sentences that they say. */
export function explained(answer) {
  const said = new Sentences();
  const sentence = `${answer.answer.charAt(0).toUpperCase()}${answer.answer.slice(1).replace(/\.$/, "")}.`;
  said.add(sentence);
  const causes = statements(answer, CAUSES).sort((a, b) => depth(b) - depth(a));
  const items = distinct(causes).map((each) => item(each, said)).filter(Boolean);
  const steps = (answer.nextSteps ?? []).filter((step) => said.add(step));
  const background = statements(answer, BACKGROUND).map((each) => item(each, said)).filter(Boolean);
  const unread = (answer.notRead ?? []).map((text) => h("li", {}, `not read: ${text}`));
  const elements = [
    h("p", { class: "sentence" }, sentence),
    items.length ? h("ul", { class: "causes" }, items) : "",
    steps.length ? next(steps) : "",
    background.length + unread.length ? folded(background.concat(unread), !items.length && !steps.length) : "",
  ];
  return { elements: elements.filter(Boolean), said };
}

/** The sentences on a page: one is new unless it is, or is part of, an earlier one. */
export class Sentences {
  #texts = [];

  has(text) {
    const plain = normal(text);
    return this.#texts.some((each) => each === plain || (plain.length >= LONG && each.includes(plain)));
  }

  /** Add a sentence, and return whether it was new. */
  add(text) {
    if (this.has(text)) return false;
    this.#texts.push(normal(text));
    return true;
  }
}

function statements(answer, labels) {
  return Object.entries(labels).flatMap(([field, label]) => (answer[field] ?? []).map((each) => ({ ...each, label })));
}

/** Leave out what another statement says, too: of two, the one with causes or the longer one stays. */
function distinct(causes) {
  return causes.filter((each, at) => !causes.some((other, index) => index !== at && covers(other, each, index < at)));
}

function covers(other, each, isEarlier) {
  const [longer, shorter] = [normal(sentenceOf(other)), normal(sentenceOf(each))];
  if (depth(other) === depth(each)) return longer.includes(shorter) && (longer !== shorter || isEarlier);
  return depth(other) > depth(each) && (longer.includes(shorter) || shorter.includes(longer));
}

function item(statement, said) {
  const text = sentenceOf(statement);
  const evidence = [
    ...(statement.evidence ?? []).map((each) => `${EVIDENCE[each.kind] ?? ""}${each.text}`),
    statement.event && `last event: ${statement.event}`,
    statement.log && `last log line: ${statement.log}`,
  ].filter((each) => each && said.add(each));
  const isNew = said.add(text);
  const below = [
    ...evidence.map((each) => h("li", { class: "evidence" }, each)),
    ...distinct(statement.causes ?? []).map((each) => item(each, said)).filter(Boolean),
  ];
  if (!isNew && !below.length) return undefined;
  return h("li", {},
    h("span", {}, statement.label || "", statement.object && h("strong", {}, statement.object), rest(statement)),
    statement.since ? h("span", { class: "age" }, ` ${lasting(statement.since)}`) : "",
    below.length ? h("ul", {}, below) : "",
  );
}

function next(steps) {
  return h("div", { class: "next" },
    h("h4", {}, "Next"),
    steps.length === 1 ? h("p", {}, steps[0]) : h("ol", {}, steps.map((step) => h("li", {}, step))),
  );
}

function folded(items, isOpen) {
  return h("details", { open: isOpen }, h("summary", {}, "Decisions, owners and writers"), h("ul", { class: "background" }, items));
}

function rest({ object, problem, text, because }) {
  const fact = (problem ?? text ?? "").replace(/\s+/g, " ");
  return `${object && fact ? ": " : ""}${fact}${because ? `, because ${because}` : ""}`;
}

const sentenceOf = (statement) => `${statement.object ?? ""}${rest(statement)}`;
const depth = ({ causes = [] }) => 1 + Math.max(-1, ...causes.map(depth));
const normal = (text) => text.toLowerCase().replace(/\s+/g, " ").trim().replace(/\.$/, "");
