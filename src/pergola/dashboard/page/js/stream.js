// The server's events. The browser reconnects by itself, and says which message it had last.

import { setClock } from "./time.js";

const SILENCE = 40 * 1000;

/** Follow the stream: `onData(data, isAll)`, `onStatus(problems)`, `onLive(isLive)`. */
export function follow({ onData, onStatus, onLive }) {
  const source = new EventSource("/api/stream");
  let heard = Date.now();
  const hear = (use) => (event) => {
    heard = Date.now();
    onLive(true);
    use(JSON.parse(event.data));
  };
  source.addEventListener("everything", hear((data) => onData(data, true)));
  source.addEventListener("changes", hear((data) => onData(data, false)));
  source.addEventListener("status", hear((status) => {
    setClock(status.now);
    onStatus(status.problems);
  }));
  source.addEventListener("error", () => {
    onLive(false);
    if (source.readyState === EventSource.CLOSED) checkSession();
  });
  setInterval(() => onLive(Date.now() - heard < SILENCE && source.readyState === EventSource.OPEN), 5000);
}

/** Return what the server answers; show the way in if the session is over. */
export async function read(path, query = {}) {
  const response = await fetch(`${path}?${new URLSearchParams(query)}`);
  if (response.status === 401) location.reload();
  if (!response.ok) throw new Error((await response.text()).trim() || `the server answered ${response.status}`);
  return response.json();
}

async function checkSession() {
  try {
    await read("/api/cluster");
    location.reload();
  } catch {
    setTimeout(checkSession, 3000);
  }
}
