/* Definitions of words, states and marks on hover, focus and touch (WCAG 2.2, 1.4.13). */
(function () {
  "use strict";
  const box = document.createElement("div");
  box.id = "explanation";
  box.className = "explanation";
  box.role = "tooltip";
  box.popover = "manual";
  let of = null, timer = 0;

  function place() {
    const at = of.getBoundingClientRect(), gap = 6, edge = 8;
    const left = Math.max(edge, Math.min(at.left, innerWidth - box.offsetWidth - edge));
    const below = at.bottom + gap + box.offsetHeight + edge <= innerHeight;
    box.style.left = `${left}px`;
    box.style.top = `${below ? at.bottom + gap : Math.max(edge, at.top - gap - box.offsetHeight)}px`;
  }

  function hide() {
    clearTimeout(timer);
    if (!of) return;
    of.removeAttribute("aria-describedby");
    of = null;
    box.hidePopover();
  }

  function show(element) {
    clearTimeout(timer);
    if (of === element) return;
    hide();
    // Inside a landmark, or the open dialog, which blocks the rest of the page.
    const home = element.closest("dialog[open]") || document.querySelector("main") || document.body;
    if (box.parentNode !== home) home.append(box);
    of = element;
    box.textContent = meaning(element);
    element.setAttribute("aria-describedby", box.id);
    box.showPopover();
    place();
  }

  /* Shared definitions are in the page once, by id. */
  const meaning = element => element.dataset.explains ?? document.getElementById(element.dataset.explainedBy).textContent.trim();
  const later = (action, wait) => { clearTimeout(timer); timer = setTimeout(action, wait); };
  const explained = e => e.target instanceof Element ? e.target.closest("[data-explains], [data-explained-by]") : null;

  /* A tap shows the definition, a second one follows the link. */
  let tapped = null;
  document.addEventListener("pointerdown", e => { tapped = e.pointerType === "touch" ? of || document.body : null; }, true);
  document.addEventListener("click", e => {
    const element = tapped && explained(e);
    if (!element || !element.matches(".term, .chip")) { if (tapped && of && !box.contains(e.target)) hide(); return; }
    if (tapped === element) return;
    if (element.matches("a")) e.preventDefault();
    show(element);
  });

  document.addEventListener("pointerover", e => {
    if (e.pointerType === "touch") return;
    const element = explained(e);
    if (element) later(() => show(element), 150);
    else if (of && box.contains(e.target)) clearTimeout(timer); // the text can be reached and selected
    else if (of && of !== document.activeElement) later(hide, 250);
    else if (!of) clearTimeout(timer);
  });
  document.addEventListener("focusin", e => { const element = explained(e); if (element) show(element); else hide(); });
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", e => { if (e.key === "Escape" && of) hide(); });
  document.addEventListener("scroll", () => { if (of && of !== document.activeElement) hide(); else if (of) place(); }, true);
  document.addEventListener("htmx:beforeSwap", e => { if (of && e.target.contains(of)) hide(); });
  document.addEventListener("htmx:afterSettle", () => { if (of && !of.isConnected) hide(); });
})();
