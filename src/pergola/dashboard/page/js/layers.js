// The layout of a graph in columns: a task stands to the right of all that it comes after.

const SWEEPS = 4;

/** Return the tasks with `column` and `row`, the flows one after another. */
export function layers(tasks) {
  const placed = new Map();
  let start = 0;
  const bands = [];
  for (const flow of new Set(tasks.map((task) => task.flow))) {
    const columns = columnsOf(tasks.filter((task) => task.flow === flow));
    columns.forEach((column, at) => column.forEach((task, row) => placed.set(task.name, { task, column: start + at, row })));
    bands.push({ flow, column: start });
    start += columns.length;
  }
  return { placed, bands };
}

function columnsOf(tasks) {
  const depth = new Map();
  for (const task of tasks) {
    const before = task.after.filter((name) => depth.has(name)).map((name) => depth.get(name) + 1);
    depth.set(task.name, Math.max(0, ...before));
  }
  const columns = [];
  for (const task of tasks) (columns[depth.get(task.name)] ??= []).push(task);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) untangle(columns);
  return columns;
}

/** Order each column by the middle of what its tasks come after, so that fewer lines cross. */
function untangle(columns) {
  const rows = new Map();
  for (const column of columns) {
    const wish = new Map(column.map((task, at) => {
      const before = task.after.filter((name) => rows.has(name)).map((name) => rows.get(name));
      return [task, before.length ? before.reduce((sum, row) => sum + row, 0) / before.length : at];
    }));
    column.sort((a, b) => wish.get(a) - wish.get(b));
    column.forEach((task, row) => rows.set(task.name, row));
  }
}
