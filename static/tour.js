/* The tour of the first visit: one step at a time, before its subject. Without this script, a list of steps. */
(function () {
  "use strict";
  const card = document.getElementById("tour");
  if (!card) return;
  const steps = [...card.querySelectorAll("li")], [back, next] = ["[data-back]", "[data-next]"].map(s => card.querySelector(s));
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let at = 0, held = null, isLeft = false;

  const target = () => document.querySelector(steps[at].dataset.at);

  function place() {
    const part = target()?.closest("section, footer, [role=tabpanel]");
    document.querySelectorAll(".toured").forEach(e => e.classList.remove("toured"));
    if (!part) return;
    part.classList.add("toured");
    hold();
    if (part.previousElementSibling !== card) part.before(card);
  }

  /* A removed or moved element loses the focus: restore it. */
  function hold() { if (card.contains(document.activeElement)) held = document.activeElement; }
  function holdOn() {
    if (document.activeElement === document.body) held?.focus({ preventScroll: true });
    held = null;
  }

  function show(step) {
    at = step;
    steps.forEach((each, number) => { each.hidden = number !== at; });
    card.querySelector("[data-place]").textContent = `Step ${at + 1} of ${steps.length}`;
    back.hidden = at === 0;
    next.hidden = at === steps.length - 1;
    place();
    card.focus({ preventScroll: true });
    card.scrollIntoView({ block: "center", behavior: still.matches ? "auto" : "smooth" });
  }

  function leave() {
    isLeft = true; // a redrawn form must not show it again
    document.querySelectorAll(".toured").forEach(e => e.classList.remove("toured"));
    card.remove();
    const address = new URL(location.href);
    address.searchParams.delete("tour"); // a reload, or a link to this page, does not show it again
    history.replaceState(history.state, "", address);
    document.querySelector("h1")?.focus();
  }

  back.addEventListener("click", () => show(at - 1));
  next.addEventListener("click", () => show(at + 1));
  card.addEventListener("keydown", e => { if (e.key === "Escape") leave(); });
  card.querySelector("[data-leave]").addEventListener("click", e => { e.preventDefault(); leave(); });
  // Another workload redraws the form and the card.
  document.body.addEventListener("htmx:beforeSwap", hold);
  document.body.addEventListener("htmx:afterSettle", () => {
    if (isLeft) return;
    if (!card.isConnected || !document.querySelector(".toured")) place();
    holdOn();
  });
  show(0);
})();
