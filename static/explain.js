/* Definitions of words, states and marks on hover, focus and touch (WCAG 2.2, 1.4.13). */
(function () {
  "use strict";
  const box = document.createElement("div");
  box.id = "explanation";
  box.className = "explanation";
  box.role = "tooltip";
  box.popover = "manual";
  let of = null, timer = 0, described = null;

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
    if (described === null) of.removeAttribute("aria-describedby");
    else of.setAttribute("aria-describedby", described);
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
    described = element.getAttribute("aria-describedby");
    element.setAttribute("aria-describedby", described === null ? box.id : `${described} ${box.id}`);
    box.showPopover();
    place();
  }

  /* Shared definitions are in the page once, by id. A select explains its chosen option. */
  const OPTION = "option[data-explains], option[data-explained-by]";
  const source = element => element.matches("select") ? element.selectedOptions[0] : element;
  const meaning = element => source(element).dataset.explains ?? document.getElementById(source(element).dataset.explainedBy).textContent.trim();
  const later = (action, wait) => { clearTimeout(timer); timer = setTimeout(action, wait); };
  const explained = e => {
    const element = e.target instanceof Element ? e.target.closest("[data-explains], [data-explained-by], select") : null;
    return element?.matches("select") && !element.selectedOptions[0]?.matches(OPTION) ? null : element;
  };

  /* A tap shows the definition, a second one follows the link. */
  let tapped = null;
  document.addEventListener("pointerdown", e => { tapped = e.pointerType === "touch" ? of || document.body : null; }, true);
  document.addEventListener("click", e => {
    const element = tapped && explained(e);
    if (!element || !element.matches(".term, .chip, .form-label")) { if (tapped && of && !box.contains(e.target)) hide(); return; }
    if (tapped === element) return;
    if (element.matches("a, .form-label")) e.preventDefault();
    show(element);
  });

  document.addEventListener("pointerover", e => {
    if (e.pointerType === "touch") return;
    const element = explained(e);
    if (element) later(() => show(element), 150);
    else if (of && box.contains(e.target)) clearTimeout(timer); // the text can be reached and selected
    else if (of && (of !== document.activeElement || of.matches("select"))) later(hide, 250);
    else if (!of) clearTimeout(timer);
  });
  /* By the keyboard: the list that a click opens covers the definition. */
  document.addEventListener("focusin", e => {
    const element = explained(e);
    if (element && (!element.matches("select") || element.matches(":focus-visible"))) show(element); else hide();
  });
  document.addEventListener("change", e => {
    if (!e.target.matches("select")) return;
    hide();
    if (explained(e)) show(e.target);
  });
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", e => { if (e.key === "Escape" && of) hide(); });
  document.addEventListener("scroll", () => { if (of && of !== document.activeElement) hide(); else if (of) place(); }, true);
  document.addEventListener("htmx:beforeSwap", e => { if (of && e.target.contains(of)) hide(); });
  document.addEventListener("htmx:afterSettle", () => { if (of && !of.isConnected) hide(); });
})();
