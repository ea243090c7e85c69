// Whose session it is, its end, and what serves the page.

import { byId } from "./dom.js";

/** Show who has signed in, and the way out of a session that was opened here. */
export function showSession({ user, session }) {
  const name = byId("user");
  [name.textContent, name.title, name.hidden] = [user, user, !user];
  byId("sign-out").hidden = !session;
  byId("sign-out").addEventListener("click", signOut);
}

/** Show the version of Pergola, and the way to its documentation. */
export function showVersion({ version, documentation }) {
  byId("version").textContent = version;
  byId("version").title = `Pergola ${version}`;
  byId("documentation").href = documentation;
  byId("documentation").hidden = false;
}

async function signOut() {
  await fetch("/sign-out", { method: "POST" });
  location.reload();
}
