// The page: what the stream brings goes to the store, and from there to the view that is open.

import { ATTENTION, Causes, FOUND, found } from "./attention.js";
import { Details } from "./details.js";
import { byId } from "./dom.js";
import { filtered, isGrouped, listenToFilters, showFilters } from "./filters.js";
import { listenToKeys } from "./keys.js";
import { nothing } from "./nothing.js";
import { address, current, go } from "./route.js";
import { onHeight } from "./rows.js";
import { clearSearch, onSearch, query } from "./search.js";
import { showSession, showVersion } from "./session.js";
import { Store } from "./store.js";
import { follow, read } from "./stream.js";
import { switchTheme } from "./theme.js";
import { MOMENTS, bars } from "./timeline.js";
import { TREE, Tree } from "./tree.js";
import { VirtualList } from "./virtual.js";

const TITLES = { attention: "Needs attention", objects: "Objects", timeline: "The last hour" };
const TICK = 5000;

const store = new Store();
const tree = new Tree(store, () => draw());
const causes = new Causes(() => draw());
const list = new VirtualList(byId("list"), { onOpen: open, onFold: fold });
const details = new Details(byId("details"), store);
let isLoaded = false;
let isDue = false;
let isRefused = false;

function open(item) {
  const id = item.cardId ?? item.about ?? item.id;
  const { view } = current();
  if (item.cardId || item.about || store.cards.has(id)) go(view, id);
  else fold(item);
}

function fold(node, isOpen) {
  if (node.members) causes.fold(node, isOpen);
  else if (node.level) tree.fold(node, isOpen);
}

/** Show the list of the current view before the next frame: many changes are drawn once. */
function draw() {
  if (isDue) return;
  isDue = true;
  const soon = document.hidden ? (work) => setTimeout(work, TICK) : requestAnimationFrame; // hidden pages have no frames
  soon(() => {
    isDue = false;
    drawNow();
  });
}

function drawNow() {
  const { view } = current();
  const text = query();
  const attention = store.attention();
  const [kind, items] = text ? [FOUND, found(store, text)] : rows(view, attention);
  byId("heading").textContent = text ? `${items.length} found` : TITLES[view];
  byId("above").replaceChildren(...(kind === MOMENTS ? bars(items) : []));
  byId("filters").hidden = kind !== ATTENTION || attention.length === 0;
  if (kind === ATTENTION) showFilters(attention);
  list.show(kind, items);
  showEmpty(kind, items, attention.length);
  showCount(attention.length);
}

function rows(view, attention) {
  if (view === "objects") return [TREE, tree.rows()];
  if (view === "timeline") return [MOMENTS, store.timeline()];
  const matching = filtered(attention);
  return [ATTENTION, isGrouped() ? causes.rows(matching) : matching];
}

function showEmpty(kind, items, hidden) {
  const isEmpty = isLoaded && !isRefused && items.length === 0;
  byId("empty").hidden = !isEmpty;
  if (isEmpty) byId("empty").replaceChildren(...nothing(kind, store, hidden));
  byId("list").hidden = isLoaded && items.length === 0;
}

function showCount(count) {
  byId("count").textContent = count || "";
  document.title = count ? `(${count}) Pergola` : "Pergola";
}

function showRoute() {
  const { view, id, part } = current();
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    link.href = address(link.dataset.view);
  }
  document.body.classList.toggle("open", Boolean(id));
  document.body.classList.toggle("wide", Boolean(part));
  details.show(id, part);
  drawNow();
  list.choose(id);
}

function showProblems(problems) {
  const element = byId("problems");
  element.hidden = problems.length === 0;
  const text = problems.map(({ kind, problem }) => `${kind}: ${problem}`).join(" · ");
  if (element.textContent !== text) element.textContent = text;
  showRefusal(problems);
}

/** Say nothing of empty lists to those who may see none of what would be in them. */
function showRefusal(problems) {
  const before = isRefused;
  isRefused = store.cards.size === 0 && problems.some(({ kind }) => kind === "Permissions");
  if (before !== isRefused) draw();
}

function showLive(isLive) {
  const element = byId("live");
  const text = isLive ? "live" : "not connected";
  if (element.textContent === text) return;
  element.textContent = text;
  element.className = isLive ? "on" : "off";
}

store.addEventListener("change", ({ detail }) => {
  isLoaded = true;
  tree.forget(detail.changed);
  details.forget(detail.changed);
  draw();
});
listenToFilters();
onSearch(draw, () => byId("list").focus());
listenToKeys({ clearSearch });
byId("theme").addEventListener("click", switchTheme);
window.addEventListener("hashchange", showRoute);
onHeight(draw);
setInterval(draw, TICK);
showRoute();
follow({ onData: (data, isAll) => store.apply(data, isAll), onStatus: showProblems, onLive: showLive });
read("/api/cluster").then((found) => {
  byId("cluster").textContent = found.cluster;
  showVersion(found);
  showSession(found);
});
