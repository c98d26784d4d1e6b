// Runs before the first paint, so that a dark page never flashes light; follows the system until somebody chooses.
(function () {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  function show() {
    document.documentElement.dataset.bsTheme = localStorage.getItem("rankwire-theme") || (dark.matches ? "dark" : "light");
  }
  show();
  dark.addEventListener("change", () => { show(); dispatchEvent(new Event("rankwire:redraw")); });
})();
