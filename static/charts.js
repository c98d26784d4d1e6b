/* The one chart theme. Figures come from the server as JSON (dashboard/charts) with colours written as tokens:
   "--s1" or "--s1/0.4" (a CSS variable, optionally with opacity), "--seq" and "--div" (colour scales).
   They are resolved here from rankwire.css, and redrawn when the theme changes. */
(function () {
  "use strict";
  const FONT = '"Plex Sans", system-ui, sans-serif';
  const SCALES = {
    light: { "--seq": ["#f3f8fb", "#bddcef", "#6db1dc", "#1f7db8", "#08406b"], "--div": ["#1f7db8", "#f4f6f7", "#d55e00"] },
    dark: { "--seq": ["#1b2630", "#1d4560", "#23709c", "#4fa8e0", "#c9e8fb"], "--div": ["#4fa8e0", "#202a33", "#ee7f3b"] },
  };
  const probe = document.createElement("i");
  probe.hidden = true;

  function resolver() {
    if (!probe.isConnected) document.body.append(probe); // light-dark() must be resolved by the browser
    const scales = SCALES[document.documentElement.dataset.bsTheme === "dark" ? "dark" : "light"], known = {};
    return function colour(token) {
      if (token in known) return known[token];
      if (token in scales) return known[token] = scales[token].map((c, i, all) => [i / (all.length - 1), c]);
      const [name, alpha] = token.split("/");
      probe.style.color = `var(${name})`;
      const rgb = getComputedStyle(probe).color;
      return known[token] = alpha ? rgb.replace(/^rgba?\(([^)]+)\)$/, (_, v) => `rgba(${v.split(",").slice(0, 3).join(",")},${alpha})`) : rgb;
    };
  }

  function resolve(value, colour) {
    if (typeof value === "string") return value.startsWith("--") ? colour(value) : value;
    if (Array.isArray(value)) return value.map(v => resolve(v, colour));
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, resolve(v, colour)]));
    return value;
  }

  function axis(given) {
    return Object.assign({
      gridcolor: "--line", zeroline: false, linecolor: "--line-2", showline: true, ticks: "outside", ticklen: 4, tickcolor: "--line-2",
      tickfont: { size: 12, color: "--ink-2" }, automargin: true, exponentformat: "none", separatethousands: true,
    }, given, { title: { text: (given.title || {}).text || "", font: { size: 12, color: "--ink-2" }, standoff: 8 } });
  }

  /* Mark axes with unequal steps; tables and files use the plain title. */
  function nameScale(plot, name, axis) {
    plot.dataset[`${name}Title`] = axis.title.text;
    if (axis.title.text) axis.unifiedhovertitle = { text: `${axis.title.text.replace(/, not to scale$/, "")}: %{x}` };
    if (axis.type === "log" && axis.title.text) axis.title.text += ", log scale";
  }

  /* Wrap the labels of categories into their width, else put every second one a line lower, else leave some numbers out: slanted words
     are hard to read. A narrow space before a unit may end a line, one between thousands may not. */
  const MOST_LINES = 5, GAP = 6, pen = document.createElement("canvas").getContext("2d");
  function fitCategories(plot, axis, traces, margin) {
    if (axis.type !== "category" || axis.tickvals || axis.domain) return;
    const labels = [...new Set((axis.categoryarray || []).concat(traces.flatMap(d => d.orientation === "h" ? [] : d.x || [])))].filter(x => x !== null && x !== undefined).map(String);
    if (labels.length < 2) return;
    pen.font = `${axis.tickfont.size}px ${FONT}`;
    const width = words => pen.measureText(words).width, room = (plot.clientWidth - margin.l - margin.r - GAP) / labels.length - GAP;
    if (labels.every(label => width(label) <= room)) return;
    const wrapped = labels.map(label => {
      const lines = [];
      for (const word of label.split(/ |[\u00a0\u202f](?=\D)/)) {
        const last = lines.length - 1;
        if (last >= 0 && width(`${lines[last]} ${word}`) <= room) lines[last] += ` ${word}`; else lines.push(word);
      }
      return lines;
    });
    if (wrapped.every(lines => lines.length <= MOST_LINES && lines.every(line => width(line) <= room))) {
      Object.assign(axis, { tickmode: "array", tickvals: labels, ticktext: wrapped.map(lines => lines.join("<br>")), tickangle: 0 });
    } else if (labels.every(label => width(label) <= 2 * room + GAP)) {
      Object.assign(axis, { tickmode: "array", tickvals: labels, ticktext: labels.map((label, k) => k % 2 ? `<br>${label}` : label), tickangle: 0 });
    } else if (labels.every(label => /^[\d.]/.test(label))) {
      const every = Math.ceil((Math.max(...labels.map(width)) + GAP) / (room + GAP));
      Object.assign(axis, { tickmode: "array", tickvals: labels.filter((_, k) => k % every === 0), tickangle: 0 });
      axis.ticktext = axis.tickvals;
    }
  }

  function layout(given) {
    const out = Object.assign({
      font: { family: FONT, size: 12, color: "--ink" }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 52, r: 14, t: 30, b: 40 }, hovermode: "x unified", uirevision: "keep", separators: ".\u202f", bargap: 0.3,
      hoverlabel: { bgcolor: "--surface", bordercolor: "--line-2", font: { family: FONT, size: 12, color: "--ink" } },
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1.01, yanchor: "bottom", font: { size: 12, color: "--ink-2" }, itemwidth: 30, bgcolor: "rgba(0,0,0,0)" },
    }, given);
    for (const k of ["xaxis", "yaxis"]) out[k] = axis(out[k] || {});
    out.annotations = (given.annotations || []).map(a => Object.assign({ showarrow: false, font: { size: 12, color: "--ink-2" } }, a));
    return out;
  }

  const drawn = new WeakMap(); // plot -> source of its picture

  function draw(plot) {
    // A running experiment gets more views as trials finish: rebuild the buttons, and keep the selection.
    for (const b of plot.closest(".panel").querySelectorAll("[data-view]")) b.setAttribute("aria-pressed", b.dataset.view === plot.dataset.figure);
    const own = plot.closest(".panel").querySelector("[data-of-view]");
    if (own) { own.hidden = own.dataset.ofView !== plot.dataset.figure; own.previousElementSibling.hidden = !own.hidden; }
    const source = document.getElementById(plot.dataset.figure);
    if (!source || plot.hidden || !plot.offsetParent) return; // a hidden tab is drawn when it opens
    drawn.set(plot, madeOf(plot));
    const figure = JSON.parse(source.textContent), colour = resolver();
    const shown = resolve({ data: figure.data, layout: layout(figure.layout) }, colour), axes = shown.layout;
    const tool = name => plot.closest(".panel").querySelector(`[data-${name}][aria-pressed=true]`);
    const published = plot.closest(".panel").querySelector("[data-published]");
    if (published) {
      // The button follows the server until the user presses it: the first trial may change the axis.
      if (!("touched" in published.dataset)) published.setAttribute("aria-pressed", figure.published);
      const on = published.getAttribute("aria-pressed") === "true";
      for (const trace of shown.data) if (trace.meta === "published") trace.visible = on;
      if (on && !figure.published) for (const a of [axes.xaxis, axes.yaxis]) { delete a.range; delete a.tickvals; }
    }
    const log = tool("scale") && tool("scale").dataset.scale === "log";
    if (log) { axes.yaxis.type = "log"; delete axes.yaxis.range; } else if (!axes.yaxis.range && axes.yaxis.type !== "log") axes.yaxis.rangemode = "tozero";
    nameScale(plot, "x", axes.xaxis);
    nameScale(plot, "y", axes.yaxis);
    fitCategories(plot, axes.xaxis, shown.data, axes.margin);
    Plotly.react(plot, shown.data, shown.layout, { responsive: true, displaylogo: false, displayModeBar: false });
    const empty = plot.parentNode.querySelector(".empty");
    if (empty) empty.hidden = figure.data.length > 0;
    plot.toggleAttribute("data-blank", Boolean(empty) && !figure.data.length); // axes without data have no meaning
    plot.dataset.drawn = document.documentElement.dataset.bsTheme;
    plot.dispatchEvent(new CustomEvent("rankwire:drawn", { bubbles: true }));
  }
  const plots = () => document.querySelectorAll(".plot[data-figure]");

  /* Draw visible charts at once, the others one by one when idle; printing waits for all. */
  const idle = window.requestIdleCallback ? work => requestIdleCallback(work, { timeout: 1000 }) : work => setTimeout(work, 1);
  const later = new Set();
  function isSeen(plot) {
    const { top, bottom } = plot.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  }
  function drawNext() {
    const [next] = later;
    if (!next) return;
    later.delete(next);
    if (next.isConnected && !isDrawn(next)) draw(next);
    if (later.size) idle(drawNext);
  }
  function drawInTurn(some) {
    const printing = document.documentElement.classList.contains("printing"), now = some.filter(plot => printing || isSeen(plot));
    const rests = later.size === 0;
    for (const plot of some) later.add(plot);
    for (const plot of now) later.delete(plot);
    now.forEach(draw);
    if (rests && later.size) idle(drawNext);
  }
  const drawAll = () => drawInTurn([...plots()]);

  function madeOf(plot) {
    const source = document.getElementById(plot.dataset.figure);
    return [source && source.textContent, plot.dataset.figure, document.documentElement.dataset.bsTheme, plot.clientWidth,
      ...plot.closest(".panel").querySelectorAll("[data-view], [data-scale], [data-published]")];
  }
  function isDrawn(plot) {
    const before = drawn.get(plot), now = madeOf(plot);
    return before !== undefined && before.length === now.length && before.every((part, k) => part === now[k]);
  }
  /* Parts of a page are replaced every few seconds during a trial: draw only changed charts, once per swap. */
  let waiting = false;
  function drawChanged() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      drawInTurn([...plots()].filter(plot => !isDrawn(plot))); // read widths before drawing
    });
  }

  /* Build the table from the drawn traces, so that both agree. */
  const text = v => v === null || v === undefined ? "" : typeof v === "number" ? number(v) : String(v);
  /* The rule of analysis/numbers.py: four significant digits, no zeros at the end, no digit before the point rounded away. */
  const FOUR_DIGITS = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 }), WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const number = v => !Number.isFinite(v) ? "\u2013"
    : (Math.abs(v) < 9999.5 ? FOUR_DIGITS : WHOLE).format(v || 0).replaceAll(",", "\u202f").replace("-", "\u2212"); // no -0
  function element(tag, attributes, ...children) {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    e.append(...children);
    return e;
  }
  function table(plot) {
    const traces = plot.data.filter(d => d.hoverinfo !== "skip" && d.visible !== false);
    if (traces[0] && (traces[0].type === "heatmap" || traces[0].type === "contour")) return matrix(plot, traces[0]);
    const sideways = d => d.orientation === "h";
    const xs = [...new Set(traces.flatMap(d => sideways(d) ? d.y : d.x))].filter(x => x !== null); // null separates two lines
    const cell = (d, x) => {
      const td = element("td", { class: "num" });
      (sideways(d) ? d.y : d.x).forEach((at, k) => {
        if (at !== x) return;
        if (td.childNodes.length) td.append(element("br", {}));
        td.append(text((sideways(d) ? d.x : d.y)[k]));
        const c = d.customdata && d.customdata[k]; // [lowest, highest, n]
        if (c && c.length === 3) td.append(" ", element("span", { class: "pm" }, `${text(c[0])} to ${text(c[1])}${c[2] === null ? "" : `, n=${c[2]}`}`));
      });
      return td;
    };
    const { xTitle, yTitle } = plot.dataset, [first, value] = traces.some(sideways) ? [yTitle, xTitle] : [xTitle, yTitle];
    const head = [first, ...traces.map(d => d.name || value)];
    const rows = new Map(traces.flatMap(d => (d.rows || []).map((row, k) => [d.x[k], row]))); // names of positions
    return grid(plot, traces.length > 1 ? value : "", head, xs.map(x => [rows.get(x) || x, ...traces.map(d => cell(d, x))]));
  }
  function matrix(plot, heat) {
    return grid(plot, "", [heat.name, ...heat.x.map(text)], (heat.text || heat.z).map((row, i) => [heat.y[i], ...row.map(v => element("td", { class: "num" }, text(v)))]));
  }
  function grid(plot, quantity, head, rows) {
    const caption = quantity ? [element("caption", { class: "small muted" }, quantity)] : [];
    const box = element("div", { class: "scroll twin", tabindex: 0 }, element("table", { class: "table" }, ...caption,
      element("thead", {}, element("tr", {}, ...head.map((h, i) => element("th", { scope: "col", class: i ? "num" : "" }, h)))),
      element("tbody", {}, ...rows.map(([first, ...cells]) => element("tr", {}, element("th", { scope: "row" }, text(first)), ...cells)))));
    box.style.maxHeight = `${plot.clientHeight}px`;
    return box;
  }

  /* Rebuild an open table with its chart, so that it shows the current view. */
  function redraw(plot) {
    const open = plot.hidden;
    if (open) { plot.previousElementSibling.remove(); plot.hidden = false; }
    draw(plot);
    if (open) { plot.before(table(plot)); plot.hidden = true; }
  }

  document.addEventListener("click", e => {
    const twin = e.target.closest("[data-table]"), scale = e.target.closest("[data-scale]"), view = e.target.closest("[data-view]"), published = e.target.closest("[data-published]");
    if (published) {
      published.dataset.touched = "";
      published.setAttribute("aria-pressed", published.getAttribute("aria-pressed") !== "true");
      redraw(published.closest(".panel").querySelector(".plot"));
    }
    if (twin) {
      const plot = twin.closest(".panel").querySelector(".plot"), open = twin.getAttribute("aria-expanded") !== "true";
      twin.setAttribute("aria-expanded", open);
      twin.textContent = open ? "Chart" : "Table";
      twin.setAttribute("aria-label", open ? "Show chart" : "Show table");
      if (!plot.data) draw(plot); // not drawn yet
      if (open) plot.before(table(plot)); else plot.previousElementSibling.remove();
      plot.hidden = open;
      if (!open) draw(plot);
    }
    if (view) {
      const plot = view.closest(".panel").querySelector(".plot");
      plot.dataset.figure = view.dataset.view;
      redraw(plot);
    }
    if (scale) {
      for (const b of scale.parentNode.querySelectorAll("[data-scale]")) b.setAttribute("aria-pressed", b === scale);
      draw(scale.closest(".panel").querySelector(".plot"));
    }
  });
  addEventListener("rankwire:redraw", drawAll);
  document.addEventListener("rankwire:figure", e => redraw(e.target)); // one plot whose figure changed
  document.addEventListener("htmx:afterSettle", drawChanged);
  let resized;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(drawChanged, 200); }); // labels wrap by width
  document.fonts.ready.then(drawAll); // measured text is wrong until the fonts are there
})();
