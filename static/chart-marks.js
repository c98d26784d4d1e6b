/* Points with links, and one configuration marked in all charts of a page.
   Traces contain for each point its key (`of`), its one trial (`trials`), or its configuration if it differs (`configurations`);
   or a common address (`leads`), whose * stands for the part of each point (`addresses`; empty: no target).
   Squares of maps have the same, row by row; their address has a * for the name of the row and one for that of the column,
   or for each of their words (`rows`, `columns`; a column without words has no target). */
(function () {
  "use strict";
  const NEAR = 14, RING = 9, SMALLEST = 6, SVG = "http://www.w3.org/2000/svg";
  const pinned = new Map(); // key -> its name and target; these stay marked
  let passing = null; // the point under the pointer or the arrow keys
  const bases = document.body.dataset;
  const leading = trace => Boolean((trace.of && trace.of.length) || trace.leads);
  const plots = () => [...document.querySelectorAll(".plot.js-plotly-plot")].filter(plot => plot.data && plot.data.some(leading));
  const mapOf = plot => plot.data.findIndex(trace => (trace.type === "heatmap" || trace.type === "contour") && leading(trace));

  /* A category may have a number as its name, which is not its position. */
  const placeOn = (axis, value) => axis._offset
    + (axis.type === "category" ? axis.l2p(axis._categories.findIndex(each => String(each) === String(value))) : axis.d2p(value));

  /* The address of a point, or undefined. */
  function placed(trace, at) {
    if (trace.leads === undefined) return undefined;
    const own = trace.addresses[at];
    return own ? trace.leads.replace("*", () => own) : "";
  }

  /* Pixel positions of the points of a plot. A bar is hit anywhere in its column. */
  function points(plot) {
    const { xaxis, yaxis } = plot._fullLayout, all = [];
    plot.data.forEach((trace, curve) => {
      if (!trace.of || curve === mapOf(plot) || trace.visible === false || plot._fullData[curve].visible !== true) return;
      trace.of.forEach((key, at) => {
        const x = placeOn(xaxis, trace.x[at]), isBar = trace.type === "bar", y = isBar ? null : placeOn(yaxis, trace.y[at]);
        if (key === "" || !Number.isFinite(x) || (!isBar && !Number.isFinite(y))) return;
        if (x < xaxis._offset - 1 || x > xaxis._offset + xaxis._length + 1) return; // zoomed out of sight
        all.push({ plot, curve, at, key: String(key), x, y, trial: (trace.trials || [])[at] || 0, configuration: (trace.configurations || trace.of)[at], to: placed(trace, at) });
      });
    });
    return all;
  }
  function columnWidth(plot) {
    const { xaxis } = plot._fullLayout;
    if (xaxis.type === "category") return xaxis._length / Math.max(1, xaxis._categories.length);
    const bars = plot.data.filter(trace => trace.type === "bar").flatMap(trace => trace.x), at = [...new Set(bars)].map(x => xaxis.d2p(x)).sort((a, b) => a - b);
    return Math.min(xaxis._length, ...at.slice(1).map((x, k) => x - at[k]));
  }

  /* A square of a map by row and column; null outside, without a measurement, or without a target. */
  function cellOf(plot, row, column) {
    const curve = mapOf(plot), trace = plot.data[curve], { xaxis, yaxis } = plot._fullLayout;
    const isIn = row >= 0 && column >= 0 && row < trace.y.length && column < trace.x.length && Number.isFinite(trace.z[row][column]);
    const key = isIn && (trace.of ? trace.of[row][column] : `${trace.name} ${row} ${column}`);
    if (!key) return null;
    const configuration = (trace.configurations || trace.of || [])[row];
    const at = row * trace.x.length + column, x = xaxis._offset + middle(xaxis, trace.x, column), y = yaxis._offset + middle(yaxis, trace.y, row);
    return { plot, curve, at, row, column, key: String(key), x, y, trial: 0, configuration: configuration && configuration[column], to: ledFrom(trace, row, column), led: trace.led };
  }
  function ledFrom(trace, row, column) {
    if (!trace.leads) return trace.leads;
    const words = [...(trace.rows ? trace.rows[row] || [] : [trace.y[row]]), ...(trace.columns ? trace.columns[column] : [trace.x[column]])];
    const parts = trace.leads.split("*");
    return words.length < parts.length - 1 ? "" : parts.map((part, at) => part + (at < parts.length - 1 ? encodeURIComponent(words[at]) : "")).join("");
  }
  /* Positions along the axis of a map: numbers of categories, values of measures (time, delay). */
  const middle = (axis, names, at) => axis.type === "category" ? axis.l2p(at) : axis.d2p(names[at]);
  function nearest(axis, names, pixel) {
    if (axis.type === "category") return Math.round(axis.p2l(pixel));
    if (pixel < 0 || pixel > axis._length) return -1;
    return names.reduce((best, _, at) => Math.abs(middle(axis, names, at) - pixel) < Math.abs(middle(axis, names, best) - pixel) ? at : best, 0);
  }
  function extent(axis, names, at) {
    const here = middle(axis, names, at), other = axis.type === "category" ? axis.l2p(at + 1) : middle(axis, names, at ? at - 1 : Math.min(1, names.length - 1));
    return Math.max(SMALLEST, Math.abs(other - here));
  }
  function cellAt(plot, left, top) {
    const { xaxis, yaxis } = plot._fullLayout, trace = plot.data[mapOf(plot)];
    const cell = cellOf(plot, nearest(yaxis, trace.y, top - yaxis._offset), nearest(xaxis, trace.x, left - xaxis._offset));
    const isFilled = cell && plot.data[cell.curve].type === "heatmap"; // contours have no measurements between positions
    return isFilled || (cell && Math.hypot(cell.x - left, cell.y - top) <= 2 * NEAR) ? cell : null;
  }

  function pointAt(plot, event) {
    const box = plot.getBoundingClientRect(), left = event.clientX - box.left, top = event.clientY - box.top;
    const { xaxis, yaxis } = plot._fullLayout;
    if (left < xaxis._offset - NEAR || top < yaxis._offset - NEAR || top > yaxis._offset + yaxis._length + NEAR) return null;
    if (mapOf(plot) >= 0) return left > xaxis._offset + xaxis._length ? null : cellAt(plot, left, top);
    let best = null, least = Infinity;
    for (const point of points(plot)) {
      const far = point.y === null ? Math.abs(point.x - left) / columnWidth(plot) * 2 * NEAR : Math.hypot(point.x - left, point.y - top);
      if (far < least && far <= NEAR) { best = point; least = far; }
    }
    return best;
  }

  const rowOf = key => document.querySelector(`[data-of="${CSS.escape(key)}"]`);
  /* Name of a point: that of the page's table, else its position in the chart. */
  function named(point) {
    const row = rowOf(point.key);
    if (row && row.dataset.name) return row.dataset.name;
    const trace = point.plot.data[point.curve];
    if (point.row !== undefined) return `${trace.y[point.row]}${trace.of || trace.columns ? ", " : " \u2192 "}${trace.x[point.column]}`;
    const at = trace.x[point.at], title = (point.plot.dataset.xTitle || "").split(",")[0];
    return typeof at === "number" ? `${title} ${at.toLocaleString("en")}` : String(at);
  }
  /* Value of a square in words; several if `meta` names them. */
  function valueOf(trace, { row, column }) {
    if (trace.meta) return trace.meta.map((name, at) => `${name} ${trace.customdata[row][column][at]}`).join(", ");
    return trace.text ? trace.text[row][column] : Number(trace.z[row][column].toPrecision(4));
  }
  function descriptionOf(point) {
    const trace = point.plot.data[point.curve];
    if (point.row !== undefined) {
      const { xTitle, yTitle } = point.plot.dataset, [row, column] = [trace.y[point.row], trace.x[point.column]];
      const value = valueOf(trace, point);
      return `${yTitle} ${row}, ${xTitle.charAt(0).toLowerCase()}${xTitle.slice(1)} ${column}: ${[value, trace.unit || ""].join(" ").trim()}`;
    }
    const y = trace.y[point.at], value = Number.isFinite(y) ? Number(y.toPrecision(4)) : "\u2013";
    return `${named(point)}; ${trace.name}: ${value}; ${point.plot.dataset.yTitle}`;
  }
  function address(point) {
    if (point.to !== undefined) return point.to;
    const [base, key] = point.trial ? [bases.trial, point.trial] : [bases.configuration, Number(point.configuration)];
    return base && key ? base.replace("/0/", `/${key}/`) : "";
  }

  /* Rings are drawn over a chart, without a redraw. */
  function ring(plot) {
    let layer = plot.querySelector(":scope > svg.marks");
    if (!layer) {
      layer = document.createElementNS(SVG, "svg");
      layer.classList.add("marks");
      layer.setAttribute("aria-hidden", "true");
      plot.append(layer);
    }
    layer.replaceChildren();
    const keys = new Set(pinned.keys());
    if (passing) keys.add(passing.key);
    if (!keys.size) return;
    if (mapOf(plot) >= 0) { ringCells(plot, layer, keys); return; }
    const { yaxis } = plot._fullLayout, columns = new Set();
    for (const point of points(plot)) {
      if (!keys.has(point.key)) continue;
      const isHere = passing && passing.plot === plot && passing.curve === point.curve && passing.at === point.at;
      if (point.y === null) {
        if (columns.has(point.key) && !isHere) continue;
        columns.add(point.key);
        const width = columnWidth(plot);
        add(layer, "rect", { x: point.x - width / 2, y: yaxis._offset, width, height: yaxis._length });
      } else add(layer, "circle", { cx: point.x, cy: point.y, r: isHere ? RING + 2 : /, trials$/.test(plot.data[point.curve].name) ? RING - 4 : RING }, isHere);
    }
  }
  function ringCells(plot, layer, keys) {
    const { xaxis, yaxis } = plot._fullLayout, trace = plot.data[mapOf(plot)];
    trace.z.forEach((line, row) => line.forEach((_, column) => {
      if (trace.of ? !keys.has(String(trace.of[row][column])) : !keys.has(`${trace.name} ${row} ${column}`)) return;
      const cell = cellOf(plot, row, column), isHere = passing && passing.plot === plot && cell && passing.at === cell.at;
      if (!cell || cell.x < xaxis._offset || cell.x > xaxis._offset + xaxis._length || cell.y < yaxis._offset || cell.y > yaxis._offset + yaxis._length) return;
      if (trace.type === "contour") { add(layer, "circle", { cx: cell.x, cy: cell.y, r: isHere ? RING + 2 : RING }, isHere); return; }
      const width = extent(xaxis, trace.x, column), height = extent(yaxis, trace.y, row);
      add(layer, "rect", { x: cell.x - width / 2, y: cell.y - height / 2, width, height }, isHere, true);
    }));
  }
  function add(layer, kind, attributes, isHere, isCell) {
    const shape = document.createElementNS(SVG, kind);
    for (const [name, value] of Object.entries(attributes)) shape.setAttribute(name, value);
    if (isHere) shape.classList.add("here");
    if (isCell) shape.classList.add("cell");
    layer.append(shape);
  }

  const bar = document.createElement("div");
  bar.className = "marked-bar";
  bar.hidden = true;
  const status = Object.assign(document.createElement("span"), { role: "status" });
  const link = Object.assign(document.createElement("a"), { className: "tool", textContent: "Open trials" });
  const clear = Object.assign(document.createElement("button"), { className: "tool", type: "button", textContent: "Clear" });
  bar.append(status, link, clear);

  /* A button in each row of the table marks it; it exists only with this script. */
  function offer() {
    const made = document.getElementById("mark-button");
    for (const row of made ? document.querySelectorAll("tr[data-of]") : []) {
      if (row.querySelector("[data-mark]")) continue;
      const button = made.content.firstElementChild.cloneNode(true);
      button.setAttribute("aria-label", `Mark ${row.dataset.name} in all charts`);
      button.setAttribute("aria-pressed", pinned.has(row.dataset.of));
      row.cells[0].append(" ", button);
    }
  }
  offer();
  document.addEventListener("htmx:afterSettle", offer);

  let asked = false;
  function show() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      plots().forEach(ring);
      for (const row of document.querySelectorAll("[data-of]")) {
        const isPinned = pinned.has(row.dataset.of);
        row.classList.toggle("marked", isPinned || (passing !== null && passing.key === row.dataset.of));
        const button = row.querySelector("[data-mark]");
        if (button) button.setAttribute("aria-pressed", isPinned);
      }
      tell();
    });
  }
  function tell() {
    if (!bar.isConnected) document.querySelector("main").append(bar);
    const walks = passing && passing.walks, names = [...pinned.values()].map(each => each.name);
    bar.hidden = !walks && !names.length;
    if (bar.hidden) { status.textContent = ""; return; }
    const words = names.length > 3 ? `${names.slice(0, 3).join("; ")} and ${names.length - 3} more` : names.join("; ");
    const now = walks ? descriptionOf(passing) : `Marked: ${words}`;
    if (status.textContent !== now) status.textContent = now;
    const [key, its] = pinned.size === 1 ? [...pinned][0] : [], only = walks ? passing : its && { key, configuration: key, to: its.to, led: its.led };
    const to = only ? address(only) : "";
    link.hidden = !to;
    if (to) link.href = to;
    link.textContent = (only && only.led) || (only && only.trial ? "Open trial" : "Open trials");
    clear.hidden = !names.length;
  }

  function pin(key, name, { to, led } = {}) {
    if (pinned.has(key)) pinned.delete(key); else pinned.set(key, { name, to, led });
    show();
  }
  function pass(point) {
    if (point === passing || (point && passing && point.plot === passing.plot && point.curve === passing.curve && point.at === passing.at)) return;
    passing = point;
    show();
  }
  function clearAll() {
    pinned.clear();
    passing = null;
    show();
  }
  clear.addEventListener("click", clearAll);

  /* Pointer: hover marks a point in all charts, a click opens it, Shift keeps the mark; touch marks, the bar opens. */
  const plotOf = e => { const plot = e.target instanceof Element && e.target.closest(".plot.js-plotly-plot"); return plot && plot.data ? plot : null; };
  let pressed = null;
  document.addEventListener("pointermove", e => {
    if (e.pointerType === "touch" || e.buttons) return;
    const plot = plotOf(e), point = plot ? pointAt(plot, e) : null, row = e.target instanceof Element && e.target.closest("[data-of]");
    if (plot) plot.classList.toggle("leads", Boolean(point && address(point)));
    if (point) pass(point);
    else if (row && rowOf(row.dataset.of)) pass({ key: row.dataset.of, plot: null, curve: -1, at: -1 });
    else if (passing && !passing.walks) pass(null);
  });
  document.addEventListener("pointerdown", e => { pressed = { plot: plotOf(e), x: e.clientX, y: e.clientY, touch: e.pointerType === "touch" }; }, true);
  // Plotly captures clicks: a press that ends at its start is a click.
  document.addEventListener("pointerup", e => {
    const plot = pressed && pressed.plot;
    if (!plot || e.button || Math.hypot(e.clientX - pressed.x, e.clientY - pressed.y) > 4) return;
    const point = pointAt(plot, e);
    if (!point) return;
    if (e.shiftKey || pressed.touch) { pin(point.key, named(point), point); return; }
    const to = address(point);
    if (!to) return;
    if (e.ctrlKey || e.metaKey) open(to, "_blank", "noopener"); else location.assign(to);
  }, true);
  document.addEventListener("click", e => {
    const button = e.target.closest("[data-mark]"), row = button && button.closest("[data-of]");
    if (row) pin(row.dataset.of, row.dataset.name);
  });

  /* Keys: left and right along a series, up and down between series, Enter opens, Space keeps the mark, Escape clears. */
  function walkCells(plot, key) {
    const trace = plot.data[mapOf(plot)], { yaxis } = plot._fullLayout, down = middle(yaxis, trace.y, trace.y.length - 1) >= middle(yaxis, trace.y, 0) ? 1 : -1;
    const [rows, columns] = [trace.y.length, trace.x.length], top = down > 0 ? 0 : rows - 1;
    const here = passing && passing.plot === plot && passing.row !== undefined ? passing : null;
    const [over, along] = { ArrowDown: [down, 0], ArrowUp: [-down, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], Home: [0, 1], End: [0, -1] }[key];
    let [row, column] = here ? [here.row, here.column] : [top, -1];
    if (here && key === "Home") column = -1;
    if (here && key === "End") column = columns;
    // Start at the first square with a target, line by line.
    for (let left = rows * columns; left > 0; left--) {
      if (here) { row += over; column += along; } else if (++column === columns) { column = 0; row += down; }
      if (row < 0 || column < 0 || row >= rows || column >= columns) break;
      const cell = cellOf(plot, row, column);
      if (cell) return cell;
    }
    return here;
  }
  function walk(plot, key) {
    if (mapOf(plot) >= 0) return walkCells(plot, key);
    const all = points(plot), here = passing && passing.plot === plot && all.find(p => p.curve === passing.curve && p.at === passing.at);
    if (!here) return all.reduce((best, p) => !best || p.x < best.x ? p : best, null);
    const own = all.filter(p => p.curve === here.curve).sort((a, b) => a.x - b.x || a.at - b.at), step = key === "ArrowRight" ? 1 : -1;
    if (key === "ArrowRight" || key === "ArrowLeft") return own[own.indexOf(here) + step] || here;
    if (key === "Home" || key === "End") return key === "Home" ? own[0] : own[own.length - 1];
    const curves = [...new Set(all.map(p => p.curve))], next = curves[curves.indexOf(here.curve) + (key === "ArrowDown" ? 1 : -1)];
    if (next === undefined) return here;
    return all.filter(p => p.curve === next).reduce((best, p) => Math.abs(p.x - here.x) < Math.abs(best.x - here.x) ? p : best);
  }
  document.addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const plot = e.target instanceof Element && e.target.matches(".plot.js-plotly-plot[tabindex]") ? e.target : null;
    if (e.key === "Escape" && (pinned.size || passing)) clearAll();
    if (!plot) return;
    if (/^(Arrow(Up|Down|Left|Right)|Home|End)$/.test(e.key)) {
      const point = walk(plot, e.key);
      if (point) { pass({ ...point, walks: true }); e.preventDefault(); }
    } else if (passing && passing.plot === plot && e.key === "Enter") {
      const to = address(passing);
      if (to) location.assign(to);
    } else if (passing && passing.plot === plot && e.key === " ") {
      pin(passing.key, named(passing), passing);
      e.preventDefault();
    }
  });
  document.addEventListener("focusout", e => { if (passing && passing.walks && e.target === passing.plot) pass(null); });

  function drawn(plot) {
    const leads = plot.data.some(leading), parts = mapOf(plot) >= 0 ? "cells" : "points";
    if (leads && !plot.hasAttribute("tabindex")) {
      plot.tabIndex = 0;
      plot.setAttribute("role", "application");
      plot.setAttribute("aria-roledescription", "chart");
      plot.setAttribute("aria-label", `${plot.getAttribute("aria-label")}. Arrow keys lead through its ${parts}, Enter opens one, space keeps it marked in all charts`);
      plot.on("plotly_afterplot", show);
    }
    if (leads) show();
  }
  document.addEventListener("rankwire:drawn", e => drawn(e.target));
  document.querySelectorAll(".plot.js-plotly-plot[data-drawn]").forEach(drawn); // those drawn before this script came
})();
