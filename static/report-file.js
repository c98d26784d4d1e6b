/* A downloaded report follows the light or dark setting of the machine. */
(function () {
  "use strict";
  const dark = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
  const follow = () => { root.dataset.bsTheme = dark.matches ? "dark" : "light"; };
  follow();
  dark.addEventListener("change", () => { follow(); dispatchEvent(new Event("rankwire:redraw")); });
})();
