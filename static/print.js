/* Charts on paper: light, and as wide as the paper is, whatever the screen was. */
(function () {
  "use strict";
  const root = document.documentElement, drawn = () => [...document.querySelectorAll(".js-plotly-plot")].filter(plot => plot.getClientRects().length);
  let theme;
  document.addEventListener("click", e => { if (e.target.closest("[data-print]")) print(); });
  addEventListener("beforeprint", () => {
    theme = root.dataset.bsTheme;
    root.dataset.bsTheme = "light";
    root.classList.add("printing");
    dispatchEvent(new Event("rankwire:redraw"));
    for (const plot of drawn()) Plotly.relayout(plot, { width: plot.clientWidth, height: plot.clientHeight });
  });
  addEventListener("afterprint", () => {
    root.dataset.bsTheme = theme;
    root.classList.remove("printing");
    for (const plot of drawn()) Plotly.relayout(plot, { width: null, height: null, autosize: true });
    dispatchEvent(new Event("rankwire:redraw"));
  });
})();
