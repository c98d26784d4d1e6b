/* A notification when an experiment ends, for who asked for it: any open page of the laboratory looks, one of them at a time.
   What this browser waits for is kept in it alone; the browser asks its reader when the button is first pressed. */
(function () {
  "use strict";
  const KEY = "rankwire-notify", EVERY_MS = 5000;
  const address = document.body.dataset.ended;
  if (!address) return;
  const buttons = () => [...document.querySelectorAll("[data-notify]")];

  function awaited() {
    try { return JSON.parse(localStorage.getItem(KEY)) || {}; } catch { return {}; }
  }
  function keep(all) {
    if (Object.keys(all).length) localStorage.setItem(KEY, JSON.stringify(all)); else localStorage.removeItem(KEY);
    show();
  }
  function show() {
    const all = awaited();
    for (const button of buttons()) {
      button.hidden = false;
      button.setAttribute("aria-pressed", Object.hasOwn(all, button.dataset.notify));
    }
  }
  function say(button, words) {
    const place = document.getElementById(button.dataset.said);
    place.textContent = words;
  }

  async function toggle(button) {
    const all = awaited(), slug = button.dataset.notify;
    if (Object.hasOwn(all, slug)) {
      delete all[slug];
      keep(all);
      say(button, "No notification.");
      return;
    }
    if (!("Notification" in window) || !isSecureContext) {
      say(button, "This browser shows no notifications here: they need https or this machine itself.");
      return;
    }
    if (await Notification.requestPermission() !== "granted") {
      say(button, "The browser does not allow notifications of this site; its settings for the site can change that.");
      return;
    }
    keep({ ...awaited(), [slug]: { name: button.dataset.name, href: new URL(button.dataset.href, location).href } });
    say(button, "You are told while any page of the laboratory is open.");
  }

  async function look() {
    const all = awaited(), slugs = Object.keys(all);
    if (!slugs.length || !("Notification" in window) || Notification.permission !== "granted") return;
    const query = new URLSearchParams(slugs.map(slug => ["of", slug]));
    const response = await fetch(`${address}?${query}`, { headers: { Accept: "application/json" }, redirect: "error" });
    if (!response.ok) return;
    const rest = awaited(); // somebody may have pressed the button meanwhile
    for (const { slug, words } of (await response.json()).ended) {
      const { name, href } = all[slug];
      delete rest[slug];
      if (!words) continue; // no longer there for this reader
      const told = new Notification(name, { body: words, tag: `rankwire-${slug}` });
      told.addEventListener("click", () => { focus(); location.assign(href); told.close(); });
    }
    if (Object.keys(rest).length !== slugs.length) keep(rest);
  }

  async function lookAlone() {
    try {
      if (navigator.locks) await navigator.locks.request(KEY, { ifAvailable: true }, lock => lock && look());
      else await look(); // two pages may look at once: the tag makes their notifications one
    } catch { /* the server is away or the session has ended: the next look may tell */ }
  }

  document.addEventListener("click", e => { const button = e.target.closest("[data-notify]"); if (button) toggle(button); });
  document.addEventListener("htmx:afterSettle", show);
  addEventListener("storage", e => { if (e.key === KEY) show(); });
  setInterval(lookAlone, EVERY_MS);
  lookAlone();
  show();
})();
