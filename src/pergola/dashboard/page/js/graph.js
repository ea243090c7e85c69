// Which tasks of a flow are drawn, and which of their dependencies: none that others imply.

const ACTIVE = new Set(["running", "failed", "unhealthy"]);
const FEW = 3;

/** Return what is drawn: only the active tasks, or all with the finished ones of a flow as one. */
export function drawn(tasks, { isActiveOnly, isFolded }) {
  const shown = tasks.filter(({ state }) => state !== "skipped");
  if (isActiveOnly) return connected(shown, (task) => (ACTIVE.has(task.state) ? task.name : ""));
  const finished = isFolded ? finishedBy(shown) : new Map();
  const nodes = [...finished].map(([flow, members]) => ({ name: nameOf(members, flow), flow, state: "done", after: [], members }));
  const placed = new Map(nodes.flatMap((node) => node.members.map(({ name }) => [name, node.name])));
  return [...nodes, ...connected(shown, ({ name }) => placed.get(name) ?? name).filter(({ name }) => !placed.has(name))];
}

const nameOf = (members, flow) => `${members.length} finished tasks of ${flow}`;

/** Return the finished tasks of each flow that come after finished ones only: folding makes no circle. */
function finishedBy(tasks) {
  const isFinished = new Map();
  const flows = new Map();
  for (const task of tasks) {
    const before = task.after.filter((name) => isFinished.has(name));
    isFinished.set(task.name, task.state === "done" && before.every((name) => isFinished.get(name)));
    if (isFinished.get(task.name)) flows.set(task.flow, [...(flows.get(task.flow) ?? []), task]);
  }
  return new Map([...flows].filter(([, members]) => members.length > FEW));
}

/** Return the tasks that have a node, after the nodes that they come after, even by tasks without one. */
function connected(tasks, nodeOf) {
  const nearest = new Map(); // of each task: itself, or the nodes before it
  const behind = new Map(); // of each node: all nodes before it
  const found = [];
  for (const task of tasks) {
    const before = new Set(task.after.flatMap((name) => [...(nearest.get(name) ?? [])]));
    const node = nodeOf(task);
    nearest.set(task.name, node ? new Set([node]) : before);
    if (node !== task.name) continue;
    const implied = new Set([...before].flatMap((name) => [...(behind.get(name) ?? [])]));
    behind.set(node, new Set([...before, ...implied]));
    found.push({ ...task, after: [...before].filter((name) => !implied.has(name)) });
  }
  return found;
}
