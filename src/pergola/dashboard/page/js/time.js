// Ages and times. The server's clock counts: that of the browser may be wrong.

let offset = 0;

/** Set the clock by the time of the server. */
export function setClock(now) {
  offset = Date.parse(now) - Date.now();
}

/** Return the server's time in milliseconds. */
export function now() {
  return Date.now() + offset;
}

/** Return for how long something has lasted, such as "41 s" or "3 h". */
export function lasting(since) {
  const seconds = Math.max(0, Math.round((now() - Date.parse(since)) / 1000));
  if (Number.isNaN(seconds)) return "";
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

/** Return the time of day, such as "14:03:59". */
export function clock(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleTimeString([], { hour12: false });
}
