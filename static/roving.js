/* Toolbars and tables of many controls as one Tab stop: arrow keys, Home and End move within it (roving tabindex of the WAI-ARIA
   practices). Tables with fields or forms stay as they are. */
(function () {
  "use strict";
  const GROUPS = "main .tools, main .tiles, main table:not(:has(form, select, textarea, input:not([type=checkbox])))";
  const CONTROLS = "a[href], button:not([disabled]), summary, input[type=checkbox], .term, .copyable";
  const ROW = "tr, article";
  const FEWEST_IN_TABLE = 10;
  const isShown = element => element.getClientRects().length > 0;
  const controls = group => [...group.querySelectorAll(CONTROLS)].filter(control => isShown(control) && !control.closest(".pop > div"));

  function settle(group) {
    const all = controls(group), hasValues = all.some(control => control.matches(".copyable")); // which are stops only here
    if (!all.length || (!hasValues && all.length < (group.matches("table") ? FEWEST_IN_TABLE : 2))) return;
    group.dataset.roving = "";
    if (group.matches(".tools")) {
      group.role = "toolbar";
      group.ariaLabel ??= group.closest(".panel")?.querySelector("h2, h3")?.textContent.trim() ?? "Tools";
    }
    const stop = all.find(control => control === document.activeElement) ?? all.find(control => control.dataset.stop === "") ?? all[0];
    moveStop(all, stop);
  }

  function moveStop(all, stop) {
    for (const control of all) {
      control.tabIndex = control === stop ? 0 : -1;
      if (control === stop) control.dataset.stop = ""; else delete control.dataset.stop;
    }
  }

  /* The control of the same column in the next row with controls. */
  function inRow(all, from, step) {
    const row = from.closest(ROW), column = all.filter(control => control.closest(ROW) === row).indexOf(from);
    let at = all.indexOf(from);
    while (all[at] && all[at].closest(ROW) === row) at += step;
    const next = all.filter(control => control.closest(ROW) === all[at]?.closest(ROW));
    return next[Math.min(column, next.length - 1)];
  }

  function target(all, from, key, hasRows) {
    const at = all.indexOf(from);
    if (key === "Home") return all[0];
    if (key === "End") return all.at(-1);
    if (key === "ArrowRight") return all[at + 1];
    if (key === "ArrowLeft") return all[at - 1];
    if (hasRows && key === "ArrowDown") return inRow(all, from, 1);
    return hasRows && key === "ArrowUp" ? inRow(all, from, -1) : undefined;
  }

  document.addEventListener("keydown", e => {
    const group = e.target.closest("[data-roving]");
    if (!group || e.ctrlKey || e.metaKey || e.altKey || e.shiftKey) return;
    const all = controls(group);
    const to = all.includes(e.target) && target(all, e.target, e.key, !group.matches(".tools"));
    if (!to) return;
    e.preventDefault();
    to.focus();
  });
  document.addEventListener("focusin", e => {
    const group = e.target.closest("[data-roving]");
    if (group && e.target.matches(CONTROLS) && !e.target.closest(".pop > div")) moveStop(controls(group), e.target);
  });

  const settleAll = () => document.querySelectorAll(GROUPS).forEach(settle);
  for (const event of ["DOMContentLoaded", "htmx:afterSettle"]) document.addEventListener(event, settleAll);
  for (const event of ["rankwire:redraw", "toggle"]) addEventListener(event, () => requestAnimationFrame(settleAll), true);
})();
