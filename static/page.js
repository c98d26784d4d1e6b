/* Behaviour of every page beyond htmx: theme, menu, tabs, copying, dialogs, live forms. */
(function () {
  "use strict";
  const redraw = () => dispatchEvent(new Event("rankwire:redraw"));

  /* On a phone, scroll the open tab into view without moving the page. */
  function moveIntoSight(tab) {
    const row = tab.parentElement;
    row.scrollLeft = tab.offsetLeft - row.offsetLeft - (row.clientWidth - tab.offsetWidth) / 2;
  }

  /* Highlight the configuration with the least of a metric, and show its sentence. */
  function decideBy(panel, metric) {
    for (const b of panel.querySelectorAll("[data-deciding]")) b.setAttribute("aria-pressed", b.dataset.deciding === metric);
    for (const row of panel.querySelectorAll("[data-least]")) row.classList.toggle("best", row.dataset.least.split(" ").includes(metric));
    for (const words of panel.querySelectorAll("[data-verdict]")) words.hidden = words.dataset.verdict !== metric;
  }

  function showTab(name) {
    const tabs = [...document.querySelectorAll("[role=tab]")];
    if (!tabs.some(t => t.getAttribute("aria-controls") === name)) return;
    for (const tab of tabs) {
      const on = tab.getAttribute("aria-controls") === name;
      tab.setAttribute("aria-selected", on);
      tab.tabIndex = on ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = !on;
      if (on) moveIntoSight(tab);
    }
    redraw();
  }

  /* The target of an address may be in a closed tab or fold. */
  function reveal(hash) {
    const target = hash.length > 1 && document.getElementById(hash.slice(1)), panel = target && target.closest("[role=tabpanel]");
    const fold = target && target.closest("details:not([open])");
    if (fold) fold.open = true;
    if (panel && panel.hidden) showTab(panel.id);
    else if (!fold) return;
    target.scrollIntoView();
  }

  /* The account stores the theme; until then, this browser does. */
  async function keepTheme(address, theme) {
    if (!address) return;
    localStorage.setItem("rankwire-theme-unsent", theme);
    const body = new URLSearchParams({ theme }), headers = JSON.parse(document.body.getAttribute("hx-headers"));
    const answer = await fetch(address, { method: "POST", body, headers, keepalive: true }).catch(() => null);
    if (answer?.ok && localStorage.getItem("rankwire-theme-unsent") === theme) localStorage.removeItem("rankwire-theme-unsent");
  }

  const toggle = document.querySelector("[data-theme-toggle]"), unsent = localStorage.getItem("rankwire-theme-unsent");
  if (toggle && unsent) keepTheme(toggle.dataset.keeps, unsent);
  document.addEventListener("submit", e => { if (e.target.matches("[data-display]")) localStorage.removeItem("rankwire-theme-unsent"); });

  async function copy(button, text) {
    if (navigator.clipboard) await navigator.clipboard.writeText(text);
    else copyHere(button, text);
    const content = button.said ??= [...button.childNodes];
    button.textContent = "Copied";
    setTimeout(() => { button.replaceChildren(...content); }, 1500);
  }

  function textOf(id) {
    const source = document.getElementById(id);
    return source.value ?? source.textContent.trim();
  }

  // Browsers give pages from other machines no clipboard without TLS.
  function copyHere(button, text) {
    const field = Object.assign(document.createElement("textarea"), { value: text });
    button.after(field);
    field.select();
    document.execCommand("copy");
    field.remove();
    button.focus();
  }

  document.addEventListener("click", e => {
    const hit = selector => e.target.closest(selector);
    let b;
    if (hit("[data-theme-toggle]")) {
      const root = document.documentElement;
      root.dataset.bsTheme = root.dataset.bsTheme === "dark" ? "light" : "dark";
      localStorage.setItem("rankwire-theme", root.dataset.bsTheme);
      keepTheme(hit("[data-theme-toggle]").dataset.keeps, root.dataset.bsTheme);
      redraw();
    }
    if ((b = hit("[data-menu]"))) b.setAttribute("aria-expanded", b.closest(".bezel").classList.toggle("open"));
    if ((b = hit("[role=tab]"))) {
      showTab(b.getAttribute("aria-controls"));
      if (b.href) {
        if (e.ctrlKey || e.metaKey || e.shiftKey) return;
        e.preventDefault();
        history.replaceState(null, "", b.href);
      } else if (!b.closest("[data-no-hash]")) history.replaceState(null, "", `#${b.getAttribute("aria-controls")}`);
    } else if ((b = hit("a[href^='#']"))) reveal(b.hash);
    if ((b = hit("[data-copy]"))) copy(b, textOf(b.dataset.copy));
    if ((b = hit("data.copyable"))) copy(b, b.value);
    if ((b = hit("[data-deciding]"))) decideBy(b.closest(".panel"), b.dataset.deciding);
    if ((b = hit("[data-dialog]"))) document.getElementById(b.dataset.dialog)?.showModal();
    if ((b = hit("[data-close]"))) b.closest("dialog").close();
    for (const pop of document.querySelectorAll("details.pop[open]")) if (!pop.contains(e.target)) pop.open = false;
  });

  const refused = document.querySelector("dialog[data-open]");
  if (refused) {
    refused.showModal();
    history.replaceState(null, "", location.pathname);  // a reload does not open it again
  }

  document.addEventListener("change", e => { if (e.target.matches("[data-submits]")) e.target.form.submit(); });

  document.addEventListener("keydown", e => {
    const tab = e.target.closest && e.target.closest("[role=tab]");
    if (tab && (e.key === "ArrowRight" || e.key === "ArrowLeft")) {
      const tabs = [...tab.closest("[role=tablist]").querySelectorAll("[role=tab]")];
      const next = tabs[(tabs.indexOf(tab) + (e.key === "ArrowRight" ? 1 : tabs.length - 1)) % tabs.length];
      next.click(); // the address follows
      next.focus();
    }
    if (e.target.matches("data.copyable") && (e.key === "Enter" || e.key === " ")) { e.preventDefault(); e.target.click(); }
    if (e.key === "Escape") for (const pop of document.querySelectorAll("details.pop[open]")) { pop.open = false; pop.firstElementChild.focus(); }
  });

  // A refreshed list keeps the selected rows.
  let ticked = [];
  document.addEventListener("htmx:beforeSwap", e => { ticked = [...e.detail.target.querySelectorAll("input[name=of]:checked")].map(box => box.value); });
  document.addEventListener("htmx:afterSwap", e => { for (const box of e.detail.target.querySelectorAll("input[name=of]")) box.checked ||= ticked.includes(box.value); });

  // A refresh keeps folds open.
  document.addEventListener("htmx:beforeSwap", e => {
    for (const fold of e.detail.target.querySelectorAll("[data-poll] details[id][open]"))
      e.detail.serverResponse = e.detail.serverResponse.replace(`<details id="${fold.id}"`, "$& open");
  });

  // The packet whose fields are read is marked.
  document.addEventListener("htmx:beforeRequest", e => {
    if (!e.target.matches("#packet-rows button")) return;
    for (const row of document.querySelectorAll("#packet-rows [aria-current]")) row.removeAttribute("aria-current");
    e.target.closest("tr").setAttribute("aria-current", "true");
  });

  // A hidden tab does not poll; it refreshes when visible again.
  document.addEventListener("htmx:beforeRequest", e => { if (document.hidden && e.target.matches("[data-poll]")) e.preventDefault(); });
  addEventListener("hashchange", () => reveal(location.hash));
  document.querySelectorAll(".subnav [aria-selected=true], .subnav [aria-current]").forEach(moveIntoSight);

  /* Mark tables that have more columns to the right; read all widths before writing. */
  function markMore(boxes) {
    const more = boxes.map(box => box.scrollWidth - box.clientWidth - box.scrollLeft > 1);
    boxes.forEach((box, k) => box.toggleAttribute("data-more", more[k]));
  }
  const widths = new ResizeObserver(entries => markMore([...new Set(entries.map(entry => entry.target.closest(".scroll")))]));
  const watch = () => document.querySelectorAll(".scroll, .scroll > table").forEach(part => widths.observe(part));
  watch();
  document.addEventListener("htmx:afterSettle", watch);
  document.addEventListener("scroll", e => { if (e.target instanceof Element && e.target.matches(".scroll")) markMore([e.target]); }, true);
  reveal(location.hash);

  // Parts load after the page: the target of its address may be among them.
  let sought = document.getElementById(location.hash.slice(1)) ? "" : location.hash;
  document.addEventListener("htmx:afterSettle", () => {
    if (!sought || sought !== location.hash || !document.getElementById(sought.slice(1))) return;
    reveal(sought);
    document.getElementById(sought.slice(1)).scrollIntoView();
    sought = "";
  });
})();

/* Fields may differ from the page: typed before its scripts loaded, restored by the browser, or sent without an answer.
   Then refresh the page as after a change. */
(function () {
  "use strict";
  const FOLLOWED = "form[hx-trigger] :is(input, select, textarea), [data-submits]";
  const heard = new WeakMap(), unanswered = new Set();

  const isTick = field => field.type === "checkbox" || field.type === "radio";
  const says = field => isTick(field) ? field.checked : field.value;

  /* The value of a field in the page as the server sent it. */
  function sent(field) {
    if (isTick(field)) return field.defaultChecked;
    if (!field.options) return field.defaultValue;
    return ([...field.options].find(option => option.defaultSelected) ?? field.options[0])?.value;
  }

  function follow() {
    for (const field of document.querySelectorAll(FOLLOWED)) {
      if (field.disabled || field.type === "hidden" || (field.type === "radio" && !field.checked)) continue;
      if (says(field) !== (heard.get(field) ?? sent(field))) field.dispatchEvent(new Event("change", { bubbles: true }));
    }
  }

  function askAgain() {
    for (const element of unanswered) if (element.isConnected) element.dispatchEvent(new Event("change"));
  }

  function hear(e) { if (e.target.matches(FOLLOWED)) heard.set(e.target, says(e.target)); }
  document.addEventListener("input", hear, true);
  document.addEventListener("change", hear, true);
  document.addEventListener("htmx:beforeRequest", e => { if (e.target.matches("form[hx-trigger], form [hx-trigger]")) unanswered.add(e.target); });
  document.addEventListener("htmx:afterRequest", e => { if (e.detail.successful) unanswered.delete(e.target); });

  /* htmx logs an aborted request as an error: a newer one that replaces it is none. */
  const latest = new WeakMap();
  document.addEventListener("htmx:beforeRequest", e => latest.set(e.detail.elt, e.detail));
  document.addEventListener("htmx:abort", e => { const request = latest.get(e.detail.elt); if (request) request.error = ""; }, true);

  /* The same address adds no history entry. */
  document.addEventListener("htmx:beforeHistoryUpdate", e => {
    if (e.detail.history.path === location.pathname + location.search) e.detail.history.type = "replace";
  });

  const wrong = document.querySelector("main:has([data-refused]) [aria-invalid=true]");
  if (wrong) {
    const fold = wrong.closest("details:not([open])");
    if (fold) fold.open = true;
    wrong.focus();
  }

  document.addEventListener("DOMContentLoaded", follow); // after htmx, which listens earlier and binds the forms then
  addEventListener("pageshow", e => {
    if (!e.persisted) return;
    // Fields of the address are restored with the page.
    for (const choice of document.querySelectorAll("[data-submits]")) choice.form.reset();
    askAgain();
  });
  addEventListener("online", askAgain);
})();
