// The time line of the last hour: bars by the minute, and the moments as a list.

import { h, s } from "./dom.js";
import { momentRow, tall } from "./rows.js";
import { now } from "./time.js";

const MINUTES = 60;

export const MOMENTS = { height: tall, role: "listbox", rowRole: "option", label: "Events and conditions that changed", draw: momentRow };

/** Return the moments as bars, warnings below in colour, with a scale. */
export function bars(moments) {
  const counts = Array.from({ length: MINUTES }, () => [0, 0]);
  for (const { time, state } of moments) {
    const minute = MINUTES - 1 - Math.floor((now() - Date.parse(time)) / 60000);
    if (counts[minute]) counts[minute][state === "trouble" ? 1 : 0] += 1;
  }
  const most = Math.max(4, ...counts.map(([normal, warning]) => normal + warning));
  const warnings = moments.filter(({ state }) => state === "trouble").length;
  const label = `${moments.length} moments in the last hour, ${warnings} of them warnings`;
  return [
    s("svg", { class: "bars", viewBox: "0 0 600 100", preserveAspectRatio: "none", role: "img", "aria-label": label },
      s("line", { x1: 0, x2: 600, y1: 99.5, y2: 99.5 }),
      counts.flatMap(([normal, warning], at) => [
        bar(at, warning, 0, most, "warning"),
        bar(at, normal, warning, most, "normal"),
      ]),
    ),
    h("p", { class: "scale" }, h("span", {}, "an hour ago"), h("span", {}, label), h("span", {}, "now")),
  ];
}

function bar(at, count, below, most, kind) {
  const unit = 96 / most;
  return count ? s("rect", { class: kind, x: at * 10 + 1, width: 8, y: 99 - (below + count) * unit, height: count * unit }) : "";
}
