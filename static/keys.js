/* Single-letter shortcuts: search, move through the rows of a list, select, compare. Off in fields and dialogs, and if the
   user disabled them (WCAG 2.1.4). */
(function () {
  "use strict";
  const OFF = "rankwire-keys-off";
  const isOff = () => localStorage.getItem(OFF) !== null;
  const dialog = document.getElementById("keys"), status = document.getElementById("keys-said");

  function isTyping(element) {
    if (element.isContentEditable || element.matches("textarea, select")) return true;
    return element.matches("input:not([type=checkbox], [type=radio], [type=submit], [type=button])");
  }

  const isShown = element => element.getClientRects().length > 0;
  const first = selector => [...document.querySelectorAll(selector)].find(isShown);
  const rows = () => [...document.querySelectorAll("table[data-rows] tbody tr")].filter(row => row.querySelector("a[href]") && isShown(row));
  const rowHere = () => document.activeElement.closest("table[data-rows] tbody tr");

  function move(step) {
    const all = rows(), at = all.indexOf(rowHere());
    const to = at < 0 ? all[step > 0 ? 0 : all.length - 1] : all[at + step];
    if (!to) return false;
    to.querySelector("a[href]").focus();
    return true;
  }

  function choose() {
    const box = rowHere()?.querySelector("input[type=checkbox]");
    if (!box) return false;
    box.click();
    status.textContent = `${box.checked ? "Selected" : "Not selected"}; ${document.querySelectorAll("table[data-rows] input:checked").length} in all`;
    return true;
  }

  function compare() {
    const form = first("table[data-rows] input[name=of]")?.form;
    if (!form) return false;
    form.requestSubmit(form.querySelector("[data-compares]"));
    return true;
  }

  function follow(rel) {
    const link = first(`a[rel=${rel}]`);
    link?.click();
    return Boolean(link);
  }

  /* Narrow headers have an icon in place of the box: it opens the box below. */
  function search() {
    const icon = first("[data-finds]");
    if (icon) {
      icon.closest(".bezel").classList.add("finding");
      icon.setAttribute("aria-expanded", "true");
    }
    const box = first(".find-box") || first("main [role=search] input");
    box?.focus();
    return Boolean(box);
  }

  document.querySelector("[data-finds]")?.addEventListener("click", search);

  const KEYS = {
    "/": search,
    j: () => move(1),
    k: () => move(-1),
    x: choose,
    c: compare,
    "[": () => follow("prev"),
    "]": () => follow("next"),
    "?": () => { dialog?.showModal(); return Boolean(dialog); },
  };

  document.addEventListener("keydown", e => {
    if (isOff() || e.ctrlKey || e.metaKey || e.altKey || e.isComposing || isTyping(document.activeElement) || document.querySelector("dialog[open]")) return;
    const act = Object.hasOwn(KEYS, e.key) && KEYS[e.key];
    if (act && act()) e.preventDefault();
  });

  const tick = document.getElementById("keys-on");
  if (tick) {
    tick.checked = !isOff();
    tick.addEventListener("change", () => tick.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1"));
  }
})();
