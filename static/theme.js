// Runs before the first paint, so that a dark page never flashes light. The account stores light, dark or system; an unsent
// switch of this browser takes precedence. Without an account the browser stores it.
(function () {
  const dark = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
  const kept = root.dataset.theme, UNSENT = "rankwire-theme-unsent", LAST = "rankwire-theme";
  if (kept && kept !== "system") localStorage.setItem(LAST, kept);
  if (kept === "system") localStorage.removeItem(LAST); // of the pages before signing in, too
  function show() {
    const chosen = kept && localStorage.getItem(UNSENT) || localStorage.getItem(LAST);
    root.dataset.bsTheme = chosen || (dark.matches ? "dark" : "light");
  }
  show();
  dark.addEventListener("change", () => { show(); dispatchEvent(new Event("rankwire:redraw")); });
})();
