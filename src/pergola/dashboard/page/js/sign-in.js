// Signing in: a token is sent once, and exchanged for a cookie that scripts cannot read.

import { byId } from "./dom.js";

byId("sign-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  const field = byId("token");
  const problem = byId("problem");
  problem.textContent = "";
  try {
    const response = await fetch("/sign-in", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token: field.value }),
    });
    if (response.ok) return location.reload();
    problem.textContent = (await response.text()).trim() || `the server answered ${response.status}`;
  } catch {
    problem.textContent = "the server does not answer";
  }
  field.select();
});
byId("enter").disabled = false; // from now on, the form is sent as above
