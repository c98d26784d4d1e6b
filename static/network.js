/* Network what-if: the fitted model of analysis/sensitivity, computed while sliders move. The numbers are those of the server. */
(function () {
  "use strict";
  const source = document.getElementById("network-model");
  if (!source) return;
  const model = JSON.parse(source.textContent), at = id => document.getElementById(id);
  const CURVE = 61, REACH = 1.03, BAND = 0.9, LEVEL = 0.95;

  /* The model: analysis/sensitivity/model.py. A link is one-way delay (s), rate (bit/s) and loss (share). */
  function elapsed(fit, link) {
    const d = fit.draws, inverse = 1 / link.rate;
    return Float64Array.from(d.base, (base, i) => base + d.messages[i] * Math.max(0, link.delay - d.hidden_delay[i])
      + d.bits[i] * Math.max(0, inverse - d.hidden_inverse_rate[i]) + link.loss * (d.loss_timeouts[i] + d.loss_round_trips[i] * link.delay));
  }
  const trial = (fit, link) => elapsed(fit, link).map((seconds, i) => seconds * fit.draws.of_a_trial[i]);
  /* The time of the program, with the interval for this share of trials. */
  const predicted = (fit, link) => ({ ...quantity(trial(fit, link), BAND), value: quantity(elapsed(fit, link), BAND).value });
  function quantity(values, level) {
    const sorted = values.slice().sort(), pick = q => sorted[nearest((sorted.length - 1) * q)], tail = (1 - level) / 2;
    return { value: pick(0.5), low: pick(tail), high: pick(1 - tail) };
  }
  function nearest(place) { // ties go to the even one, as in numpy's "nearest"
    const low = Math.floor(place), part = place - low;
    return part > 0.5 || (part === 0.5 && low % 2) ? low + 1 : low;
  }
  function within(fit, link) {
    const inside = ([low, high], value) => low / REACH <= value && value <= high * REACH;
    return inside(fit.measured.delay, link.delay) && inside(fit.measured.inverse_rate, 1 / link.rate) && inside(fit.measured.loss, link.loss);
  }

  /* Numbers in words: the rule of analysis/numbers.py. */
  const PREFIXES = { "-9": "n", "-6": "µ", "-3": "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T" }, ENDS = { s: [-9, 0], "bit/s": [0, 12] }, NARROW = "\u202f";
  const power = (value, digits) => Number(value.toExponential(digits - 1).split("e")[1]);
  function significant(value, digits) {
    if (!Number.isFinite(value)) return "\u2013";
    if (value === 0) return "0";
    const [whole, part] = value.toFixed(Math.max(0, digits - 1 - power(value, digits))).split("."), grouped = whole.replace(/\B(?=(\d{3})+$)/g, NARROW);
    return part ? `${grouped}.${part}`.replace(/\.?0+$/, "") : grouped;
  }
  function parts(value, unit, digits) {
    if (unit === "%") return [significant(100 * value, digits), "%"];
    const [least, most] = ENDS[unit], exponent = value ? power(value, digits) : 0;
    const prefix = value ? Math.max(least, Math.min(most, Math.floor(exponent / 3) * 3)) : 0;
    return [significant(value / 10 ** prefix, digits), PREFIXES[prefix] + unit];
  }
  const amount = (value, unit, digits = 3) => parts(value, unit, digits).join(NARROW);
  function between(low, high, unit) {
    if (!unit) return `${significant(low, 3)} to ${significant(high, 3)}`;
    const [first, firstUnit] = parts(low, unit, 3), [last, lastUnit] = parts(high, unit, 3);
    return `${firstUnit === lastUnit ? first : first + NARROW + firstUnit} to ${last}${NARROW}${lastUnit}`;
  }
  const times = ratio => `${significant(ratio, 3)}×`;
  const words = link => `${amount(link.delay, "s")}, ${amount(link.rate, "bit/s")}`;

  /* Until the user moves a slider, the link is exactly the measured one. */
  const moved = new Set();
  function chosen() {
    const fit = model.fits[at("combination") ? Number(at("combination").value) : 0], of = (name, value) => moved.has(name) ? value() : fit.here[name];
    return { fit, link: {
      delay: of("delay", () => 10 ** Number(at("delay").value)),
      rate: of("rate", () => 10 ** Number(at("rate").value)),
      loss: of("loss", () => Number(at("loss").value)),
    } };
  }

  function predict(fit, link) {
    const time = predicted(fit, link), here = elapsed(fit, fit.here), there = elapsed(fit, link);
    const against = quantity(there.map((seconds, i) => seconds / here[i]), LEVEL);
    at("delay-words").textContent = amount(link.delay, "s");
    at("rate-words").textContent = at("curve-rate").textContent = amount(link.rate, "bit/s");
    at("loss-words").textContent = link.loss ? amount(link.loss, "%") : amount(0, "%");
    if (at("combination")) at("combination-words").textContent = fit.at;
    at("elapsed").textContent = amount(time.value, "s");
    at("elapsed-interval").textContent = between(time.low, time.high, "s");
    at("against").textContent = times(against.value);
    at("against-interval").textContent = against.low === against.high ? "" : between(against.low, against.high);
    at("beyond").hidden = within(fit, link);
    offer(fit, link);
    return time;
  }

  /* A saved prediction contains only the link: the server computes its own prediction. */
  function offer(fit, link) {
    if (!at("keep")) return;
    for (const [name, value] of Object.entries({ ...link, at: fit.at })) at("keep").elements[name].value = value;
  }

  function buy(fit, link) {
    const now = elapsed(fit, link);
    at("bought-from").textContent = words(link);
    document.querySelectorAll("#bought tbody tr").forEach((row, i) => {
      const change = model.changes[i], other = { delay: link.delay * change.delay, rate: change.rate || link.rate * change.rate_times, loss: link.loss };
      const there = elapsed(fit, other), faster = quantity(now.map((seconds, k) => seconds / there[k]), LEVEL);
      const cells = { link: words(other), elapsed: amount(quantity(there, LEVEL).value, "s"), faster: times(faster.value),
        interval: between(faster.low, faster.high), basis: within(fit, other) ? "measured" : "extended" };
      for (const [name, text] of Object.entries(cells)) row.querySelector(`[data-of=${name}]`).textContent = text;
    });
  }

  /* Fill the empty traces in the source of the figure, so that theme and table follow. */
  function show(fit, link, time) {
    const place = model.fits.indexOf(fit), plot = document.querySelector("#c-curve .plot"), text = at(`figure-curve-${place}`);
    const figure = JSON.parse(text.textContent), to = model.exponents, scaled = seconds => seconds / 10 ** to.elapsed;
    const most = 1.05 * Math.max(fit.measured.delay[1], link.delay), delays = Array.from({ length: CURVE }, (_, i) => i * most / (CURVE - 1));
    const curve = delays.map(delay => ({ ...predicted(fit, { ...link, delay }), delay }));
    for (const trace of figure.data) {
      if (trace.meta === "yours") { trace.x = [link.delay / 10 ** to.delay]; trace.y = [scaled(time.value)]; continue; }
      const end = { low: "low", high: "high", fit: "value" }[trace.meta];
      if (end) { trace.x = curve.map(p => p.delay / 10 ** to.delay); trace.y = curve.map(p => scaled(p[end])); }
    }
    text.textContent = JSON.stringify(figure);
    plot.dataset.figure = text.id;
    if (globalThis.Plotly) plot.dispatchEvent(new Event("rankwire:figure", { bubbles: true }));
    const map = document.querySelector("#c-map .plot");
    if (map.dataset.figure !== `figure-map-${place}`) {
      map.dataset.figure = `figure-map-${place}`;
      map.dispatchEvent(new Event("rankwire:figure", { bubbles: true }));
    }
  }

  /* Best number of hosts: analysis/sensitivity/scaling.py. One row and one line are those of the sliders. */
  function stops(link) {
    const row = document.querySelector("#stops [data-yours]");
    if (!row) return;
    const times = model.fits.map(fit => elapsed(fit, link)), wins = model.fits.map(() => 0), draws = Math.min(...times.map(each => each.length));
    for (let i = 0; i < draws; i++) wins[times.reduce((best, each, k) => each[i] < times[best][i] ? k : best, 0)]++;
    const best = wins.indexOf(Math.max(...wins)), intervals = times.map(each => quantity(each.slice(0, draws), LEVEL)), write = (name, text) => { row.querySelector(`[data-of=${name}]`).textContent = text; };
    write("link", words(link));
    intervals.forEach((time, k) => write(`size-${k}`, `${amount(time.value, "s")} ${between(time.low, time.high, "s")}`));
    write("best", `${model.fits[best].at} ${amount(wins[best] / draws, "%", 2)}`);
    write("basis", model.fits.every(fit => within(fit, link)) ? "measured" : "extended");
    const text = at("figure-stops"), figure = JSON.parse(text.textContent), scaled = seconds => seconds / 10 ** figure.exponent;
    const [here, yours] = figure.data;
    Object.assign(yours, { x: here.x, y: intervals.map(time => scaled(time.value)), customdata: intervals.map(time => [scaled(time.low), scaled(time.high), null]) });
    Object.assign(yours.error_y, { array: intervals.map(time => scaled(time.high - time.value)), arrayminus: intervals.map(time => scaled(time.value - time.low)) });
    text.textContent = JSON.stringify(figure);
    if (globalThis.Plotly) document.querySelector("#c-stops .plot").dispatchEvent(new Event("rankwire:figure", { bubbles: true }));
  }

  let waiting = false;
  function answer() {
    const { fit, link } = chosen(), time = predict(fit, link);
    buy(fit, link);
    if (waiting) return;
    waiting = true; // redraw charts once per frame
    requestAnimationFrame(() => {
      waiting = false;
      const now = chosen();
      show(now.fit, now.link, predicted(now.fit, now.link));
      stops(now.link);
    });
  }
  /* Store the sliders in the address (?delay= in s, &rate= in bit/s, &loss= as a share, &at= the combination). */
  const SLIDERS = { delay: Math.log10, rate: Math.log10, loss: share => share };
  function restore() {
    const asked = new URLSearchParams(location.search), place = model.fits.findIndex(fit => fit.at === asked.get("at"));
    if (at("combination") && place >= 0 && !moved.has("combination")) at("combination").value = place;
    const here = chosen().fit.here;
    for (const [name, position] of Object.entries(SLIDERS)) {
      if (moved.has(name)) continue;
      const value = asked.has(name) ? Number(asked.get(name)) : NaN, slider = at(name);
      if (slider.disabled || !(value >= 0) || Math.abs(value - here[name]) <= 1e-9 * here[name]) continue;
      slider.value = Math.max(Number(slider.min), position(value));
      moved.add(name);
    }
  }
  function remember() {
    const { fit, link } = chosen(), asked = new URLSearchParams([...moved].filter(name => name in SLIDERS).map(name => [name, link[name].toPrecision(4)]));
    if (fit.at) asked.set("at", fit.at);
    history.replaceState(null, "", `?${asked}${location.hash}`);
  }
  /* The user may have moved the sliders before this script loaded, or the browser may restore them. */
  function takeOver() {
    const sent = slider => Math.min(Number(slider.max), Math.max(Number(slider.min), Number(slider.defaultValue)));
    for (const slider of document.querySelectorAll("#sliders [type=range]")) if (Math.abs(Number(slider.value) - sent(slider)) > 1e-9) moved.add(slider.id);
    return moved.size > 0;
  }
  at("sliders").addEventListener("input", e => { moved.add(e.target.id); answer(); });
  at("sliders").addEventListener("change", remember); // when a slider is released
  const wereMoved = takeOver();
  restore();
  answer();
  if (wereMoved) remember();
})();
