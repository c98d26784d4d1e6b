/* Fields may say other than what a page tells: written before its scripts came (a slow network), put back by the browser, or
   told to a server that did not answer. Then the page follows as if they had just been changed. */
(function () {
  "use strict";
  const FOLLOWED = "form[hx-trigger] :is(input, select, textarea), [data-submits]";
  const heard = new WeakMap(), unanswered = new Set();

  const isTick = field => field.type === "checkbox" || field.type === "radio";
  const says = field => isTick(field) ? field.checked : field.value;

  /* What a field says in the page as the server sent it. */
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

  /* An answer to the same question is no step to go back to. */
  document.addEventListener("htmx:beforeHistoryUpdate", e => {
    if (e.detail.history.path === location.pathname + location.search) e.detail.history.type = "replace";
  });

  document.addEventListener("DOMContentLoaded", follow); // after htmx, which listens earlier and binds the forms then
  addEventListener("pageshow", e => {
    if (!e.persisted) return;
    // What leads to another page stands again where this page stands.
    for (const choice of document.querySelectorAll("[data-submits]")) choice.form.reset();
    askAgain();
  });
  addEventListener("online", askAgain);
})();
