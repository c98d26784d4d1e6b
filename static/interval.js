/* The interval of the rate chart, dragged or typed; the form's address lists its packets. */
(function () {
  "use strict";
  const DIGITS = 6;
  const form = document.querySelector("form[data-interval]"), plot = form && form.closest(".panel").querySelector(".plot");
  if (!plot) return;
  const { from_s: from, until_s: until } = form.elements;
  const rounded = seconds => String(Number(Math.max(0, seconds).toFixed(DIGITS)));

  /* Plotly reports every change of the axes, including those of the fields. */
  function dragged(change) {
    const range = change["xaxis.range"] || [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    if (change["xaxis.autorange"]) from.value = until.value = "";
    else if (range.every(Number.isFinite)) [from.value, until.value] = range.map(rounded);
  }

  function written() {
    if (!plot.data || !form.checkValidity()) return;
    const whole = JSON.parse(document.getElementById(plot.dataset.figure).textContent).layout.xaxis.range;
    const range = [from.value === "" ? whole[0] : Number(from.value), until.value === "" ? whole[1] : Number(until.value)];
    if (range[0] < range[1]) Plotly.relayout(plot, { "xaxis.range": range });
  }

  form.addEventListener("change", written);
  form.addEventListener("submit", () => { for (const field of [from, until]) field.disabled = field.value === ""; });
  addEventListener("pageshow", () => { from.disabled = until.disabled = false; });
  function follow() {
    if (plot.dataset.interval) return;
    plot.dataset.interval = "1";
    plot.on("plotly_relayout", dragged);
    if (from.value !== "" || until.value !== "") written(); // before there was a chart to zoom
  }

  plot.addEventListener("rankwire:drawn", follow);
  if (plot.data) follow(); // on a slow network it is drawn before this script loads
})();
