/* Notifications of ended experiments, on request: one open page of the installation polls at a time.
   The browser stores its list of experiments, and asks for permission on the first press. */
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
    const place = document.getElementById(button.dataset.status);
    place.textContent = words;
  }

  async function toggle(button) {
    const all = awaited(), slug = button.dataset.notify;
    if (Object.hasOwn(all, slug)) {
      delete all[slug];
      keep(all);
      say(button, "Notification off.");
      return;
    }
    if (!("Notification" in window) || !isSecureContext) {
      say(button, "Notifications need https or a page on localhost.");
      return;
    }
    if (await Notification.requestPermission() !== "granted") {
      say(button, "The browser blocks notifications: allow them in its settings for this site.");
      return;
    }
    keep({ ...awaited(), [slug]: { name: button.dataset.name, href: new URL(button.dataset.href, location).href } });
    say(button, "You will be notified while any page of Rankwire is open.");
  }

  async function look() {
    const all = awaited(), slugs = Object.keys(all);
    if (!slugs.length || !("Notification" in window) || Notification.permission !== "granted") return;
    const query = new URLSearchParams(slugs.map(slug => ["of", slug]));
    const response = await fetch(`${address}?${query}`, { headers: { Accept: "application/json" }, redirect: "error" });
    if (!response.ok) return;
    const rest = awaited(); // the user may have pressed the button since
    for (const { slug, words } of (await response.json()).ended) {
      const { name, href } = all[slug];
      delete rest[slug];
      if (!words) continue; // no longer visible to the user
      const notification = new Notification(name, { body: words, tag: `rankwire-${slug}` });
      notification.addEventListener("click", () => { focus(); location.assign(href); notification.close(); });
    }
    if (Object.keys(rest).length !== slugs.length) keep(rest);
  }

  async function lookAlone() {
    try {
      if (navigator.locks) await navigator.locks.request(KEY, { ifAvailable: true }, lock => lock && look());
      else await look(); // two pages may poll at once: the tag merges their notifications
    } catch { /* the server is unreachable or the session has ended: retry at the next poll */ }
  }

  document.addEventListener("click", e => { const button = e.target.closest("[data-notify]"); if (button) toggle(button); });
  document.addEventListener("htmx:afterSettle", show);
  addEventListener("storage", e => { if (e.key === KEY) show(); });
  setInterval(lookAlone, EVERY_MS);
  lookAlone();
  show();
})();
