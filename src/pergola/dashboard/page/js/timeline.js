// The time line of the last hour: bars by the minute, and the moments as a list.

import { h, s } from "./dom.js";
import { medium, momentRow } from "./rows.js";
import { now } from "./time.js";

const MINUTES = 60;
const LINE = 62; // of 100

export const MOMENTS = { height: medium, role: "listbox", rowRole: "option", label: "Events and conditions that changed", draw: momentRow };

/** Return the moments as bars above a line, warnings as points in colour below it, with a scale. */
export function bars(moments) {
  const counts = Array.from({ length: MINUTES }, () => [0, 0]);
  for (const { time, state } of moments) {
    const minute = MINUTES - 1 - Math.floor((now() - Date.parse(time)) / 60000);
    if (counts[minute]) counts[minute][state === "trouble" ? 1 : 0] += 1;
  }
  const most = Math.max(4, ...counts.flat());
  const warnings = moments.filter(({ state }) => state === "trouble").length;
  const label = `${moments.length} moments in the last hour, ${warnings} of them warnings`;
  return [
    s("svg", { class: "bars", viewBox: "0 0 600 100", preserveAspectRatio: "none", role: "img", "aria-label": label },
      s("line", { x1: 0, x2: 600, y1: LINE, y2: LINE }),
      counts.flatMap(([normal, warning], at) => [bar(at, normal / most), point(at, warning / most)]),
    ),
    h("p", { class: "scale" }, h("span", {}, "an hour ago"), h("span", {}, label, h("span", { class: "key", "aria-hidden": "true" }, "▼")), h("span", {}, "now")),
  ];
}

function bar(at, share) {
  return share ? s("rect", { class: "normal", x: at * 10 + 1, width: 8, y: LINE - share * LINE, height: share * LINE }) : "";
}

/** Return a point below the line, of which even the smallest can be seen. */
function point(at, share) {
  const depth = LINE + Math.max(14, share * (100 - LINE));
  return share ? s("path", { class: "warning", d: `M${at * 10} ${LINE + 1} h10 L${at * 10 + 5} ${depth} z` }) : "";
}
