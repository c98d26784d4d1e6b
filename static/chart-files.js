/* A chart as a file: image or numbers, with title, object, date and address. */
(function () {
  "use strict";
  const WIDTH = 960, HEIGHT = 540, HEAD = 72, LIMIT_MS = 60000;
  const words = e => (e ? e.textContent : "").replace(/\s+/g, " ").trim();

  /* The name alone, without the state of the experiment. */
  const named = h1 => words(h1 && [...h1.childNodes].find(node => node.nodeType === Node.TEXT_NODE && node.textContent.trim())) || words(h1);

  function description(plot) {
    const panel = plot.closest(".panel"), view = panel.querySelector("[data-view][aria-pressed=true]"), at = new URL(location);
    at.hash = panel.id;
    return {
      title: [words(panel.querySelector("header h3, header h2")), words(view)].filter(Boolean).join(": "),
      of: [words(document.querySelector("[data-experiment]")), named(document.querySelector(".head h1"))].filter(Boolean).join(": "),
      date: new Date().toLocaleDateString("sv", { timeZone: document.documentElement.dataset.timeZone }), // 2026-11-24
      at: at.href,
    };
  }

  const escaped = text => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  async function picture(plot, format) {
    const about = description(plot), shown = plot.layout, margin = shown.margin || {};
    const layout = Object.assign({}, shown, {
      autosize: false, width: WIDTH, height: HEIGHT + HEAD,
      paper_bgcolor: getComputedStyle(plot.closest(".panel")).backgroundColor,
      margin: Object.assign({}, margin, { t: (margin.t || 30) + HEAD, l: Math.max(margin.l || 0, 60) }),
      title: {
        text: `<b>${escaped(about.title)}</b>, ${escaped(about.of)}`,
        subtitle: { text: `${about.date}, ${escaped(about.at)}`, font: { size: 11, color: shown.font.color } },
        font: { size: 15, color: shown.font.color }, x: 0.012, xanchor: "left", y: 0.985, yref: "container", yanchor: "top",
      },
    });
    return Plotly.toImage({ data: plot.data, layout }, { format, width: WIDTH, height: HEIGHT + HEAD, scale: format === "png" ? 2 : 1 });
  }

  /* Mark formulas as text, as in the exports of the server. */
  function cell(value) {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  /* What the bars of the chart are, in its caption's words. */
  const bars = plot => [...new Set(plot.data.flatMap(trace => [trace.error_y, trace.error_x]).filter(bar => bar && bar.bars && [...bar.array, ...bar.arrayminus].some(Boolean)).map(bar => bar.bars))].join(" ");

  function rows(plot) {
    const x = plot.dataset.xTitle || "x", y = plot.dataset.yTitle || "y", out = [];
    for (const trace of plot.data) {
      if (trace.hoverinfo === "skip" || trace.visible === false) continue;
      if (trace.type === "heatmap" || trace.type === "contour") {
        if (!out.length) out.push([x, y, trace.name || "value"]);
        trace.z.forEach((row, i) => row.forEach((value, k) => out.push([trace.x[k], trace.y[i], value])));
        continue;
      }
      const names = bars(plot).includes("interval") ? ["interval low", "interval high"] : ["lowest", "highest"], isWide = plot.data.some(trace => trace.error_x);
      if (!out.length) out.push(["series", x, y, ...names, "n", ...(isWide ? names.map(name => `${x}, ${name}`) : [])]);
      (trace.x || []).forEach((at, k) => {
        const spread = trace.customdata && trace.customdata[k];
        if (at !== null) out.push([trace.name || "", at, trace.y[k],
          ...(Array.isArray(spread) && spread.length === 3 ? spread : [...ends(trace, "y", k), ""]), ...(isWide ? ends(trace, "x", k) : [])]);
      });
    }
    return out;
  }

  /* Ends of the bar of a point. */
  function ends(trace, axis, k) {
    const bar = trace[`error_${axis}`], value = trace[axis][k];
    return bar && value !== null && (bar.array[k] || bar.arrayminus[k]) ? [value - bar.arrayminus[k], value + bar.array[k]] : ["", ""];
  }

  function numbers(plot) {
    const about = description(plot), head = [about.title, about.of, about.date, bars(plot), about.at].filter(Boolean).map(line => `# ${line}\r\n`).join("");
    return head + rows(plot).map(row => row.map(cell).join(",") + "\r\n").join("");
  }

  function save(href, name) {
    const link = document.createElement("a");
    link.href = href;
    link.download = name;
    link.click();
  }

  document.addEventListener("click", async e => {
    const button = e.target.closest("[data-save]");
    if (!button) return;
    const plot = button.closest(".panel").querySelector(".plot"), about = description(plot), kind = button.dataset.save;
    const name = `${about.of} ${about.title}`.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 80) || "chart";
    const menu = button.closest("details");
    menu.open = false;
    menu.querySelector("summary").focus();
    if (!plot.data) plot.dispatchEvent(new CustomEvent("rankwire:figure", { bubbles: true })); // not drawn yet
    if (kind === "csv") {
      const address = URL.createObjectURL(new Blob([numbers(plot)], { type: "text/csv" }));
      save(address, `${name}.csv`);
      setTimeout(() => URL.revokeObjectURL(address), LIMIT_MS);
    } else save(await picture(plot, kind), `${name}.${kind}`);
  });
  document.addEventListener("keydown", e => {
    const menu = e.key === "Escape" && e.target.closest("details.save[open]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
  });
})();
