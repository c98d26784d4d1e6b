/* Full screen for a chart, and one cursor over the charts of one time axis.
   A figure's `layout.meta` has the moment of its zero (`zero_s`, seconds since the epoch) and the length of a unit of its axis (`unit_s`). */
(function () {
  "use strict";

  /* Some browsers have no full screen for elements (telephones of Apple): the panel then covers the window. */
  function shown(panel, isFull) {
    for (const each of document.querySelectorAll("[data-full]")) each.setAttribute("aria-pressed", isFull && panel.contains(each));
    dispatchEvent(new Event("resize")); // the chart takes the room
  }
  function leave() {
    const panel = document.querySelector(".panel.full");
    if (!panel) return false;
    panel.classList.remove("full");
    shown(panel, false);
    return true;
  }
  document.addEventListener("click", e => {
    const button = e.target.closest("[data-full]");
    if (!button) return;
    const panel = button.closest(".panel");
    if (document.fullscreenElement) document.exitFullscreen();
    else if (!leave()) {
      const cover = () => { panel.classList.add("full"); shown(panel, true); };
      if (panel.requestFullscreen) panel.requestFullscreen().catch(cover); else cover();
    }
  });
  document.addEventListener("fullscreenchange", e => shown(e.target, Boolean(document.fullscreenElement)));
  document.addEventListener("keydown", e => { if (e.key === "Escape") leave(); });

  const timed = () => [...document.querySelectorAll(".plot.js-plotly-plot")].filter(plot => plot.offsetParent && plot.layout && plot.layout.meta);
  function lineOf(plot) {
    const line = plot.querySelector(":scope > .moment") || Object.assign(document.createElement("div"), { className: "moment", hidden: true });
    if (!line.isConnected) plot.append(line);
    return line;
  }
  function show(plot, moment_s) {
    const { xaxis, yaxis } = plot._fullLayout, { zero_s, unit_s } = plot.layout.meta, line = lineOf(plot);
    const x = (moment_s - zero_s) / unit_s, left = xaxis.d2p(x);
    line.hidden = !(left >= 0 && left <= xaxis._length);
    if (line.hidden) { Plotly.Fx.unhover(plot); return; }
    Object.assign(line.style, { left: `${xaxis._offset + left}px`, top: `${yaxis._offset}px`, height: `${yaxis._length}px` });
    if (plot.layout.hovermode === "x unified") Plotly.Fx.hover(plot, { xval: x }, "xy");
  }
  function hide(plot) {
    lineOf(plot).hidden = true;
    Plotly.Fx.unhover(plot);
  }

  let from = null;
  document.addEventListener("pointermove", e => {
    const plot = e.target instanceof Element && e.target.closest(".plot"), all = timed(), others = all.filter(each => each !== plot);
    const axis = all.includes(plot) && plot._fullLayout.xaxis, at = axis ? e.clientX - plot.getBoundingClientRect().left - axis._offset : -1;
    if (!axis || at < 0 || at > axis._length) {
      if (from) all.forEach(hide);
      from = null;
      return;
    }
    from = plot;
    lineOf(plot).hidden = true;
    for (const each of others) show(each, plot.layout.meta.zero_s + axis.p2d(at) * plot.layout.meta.unit_s);
  });
})();
