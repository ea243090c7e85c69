// Whose session it is, and its end.

import { byId } from "./dom.js";

/** Show who has signed in, and the way out of a session that was opened here. */
export function showSession({ user, session }) {
  const name = byId("user");
  [name.textContent, name.title, name.hidden] = [user, user, !user];
  byId("sign-out").hidden = !session;
  byId("sign-out").addEventListener("click", signOut);
}

async function signOut() {
  await fetch("/sign-out", { method: "POST" });
  location.reload();
}
