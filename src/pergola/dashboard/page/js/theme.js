// Light or dark: as the system says, until someone chooses.

const stored = localStorage.getItem("theme");
if (stored) document.documentElement.dataset.theme = stored;

/** Switch to the other theme, and remember it in this browser. */
export function switchTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
}
