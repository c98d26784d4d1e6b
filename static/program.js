/* The form of a program: rows are added and removed, and fields with errors are marked. The server reads the pasted output. */
(function () {
  "use strict";
  const form = document.getElementById("program");
  const changed = () => form.dispatchEvent(new Event("rankwire:rows"));

  const invalid = form.querySelector("[aria-invalid=true]");
  if (invalid) {
    for (let details = invalid.closest("details"); details; details = details.parentElement.closest("details")) details.open = true;
    invalid.focus();
  }

  form.addEventListener("click", e => {
    const add = e.target.closest("[data-add]"), remove = e.target.closest("[data-remove]");
    if (add) {
      const path = add.dataset.add, rows = form.querySelector(`[data-rows-of="${path}"]`);
      const numbers = [...rows.querySelectorAll("[name]")].map(input => Number(input.name.split(".")[1]));
      const html = document.getElementById(`row-${path}`).innerHTML.replaceAll("__n__", String(Math.max(-1, ...numbers) + 1));
      rows.insertAdjacentHTML("beforeend", html);
      rows.lastElementChild.querySelector("input").focus();
    }
    if (remove) {
      const rows = remove.closest("[data-rows-of]");
      remove.closest("fieldset").remove();
      (rows.querySelector("fieldset:last-of-type input") || form.querySelector(`[data-add="${rows.dataset.rowsOf}"]`)).focus();
      changed();
    }
  });

  document.addEventListener("htmx:afterSettle", () => {
    for (const place of form.querySelectorAll(".err[id]")) {
      const input = form.querySelector(`[aria-describedby~="${place.id}"]`), bad = place.textContent.trim() !== "";
      if (!input) continue;
      input.classList.toggle("is-invalid", bad);
      if (bad) input.setAttribute("aria-invalid", "true"); else input.removeAttribute("aria-invalid");
    }
  });
})();
