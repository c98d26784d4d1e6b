/* The new-experiment form: rows of the sweep, swept fields, and YAML files. The preview itself is the server's. */
(function () {
  "use strict";
  const form = document.getElementById("new");
  const rows = () => [...document.querySelectorAll("#sweep tbody tr")];
  const changed = () => form.dispatchEvent(new Event("change"));

  // The server answers per row by number, so rows are numbered anew whenever one comes or goes.
  function renumber() {
    const parts = { ".err": "err-sweep", ".hint": "values", "td.num > span": "count" };
    rows().forEach((row, i) => { for (const [part, name] of Object.entries(parts)) row.querySelector(part).id = `${name}-${i}`; });
  }

  // A parameter that is swept has no constant: its field says so and keeps what stood there.
  function markSwept() {
    const swept = new Set(rows().map(row => row.querySelector("select").value));
    for (const input of form.querySelectorAll("input[data-parameter]")) {
      const on = swept.has(input.dataset.parameter);
      if (on && !input.disabled) { input.dataset.kept = input.value; input.value = "swept"; }
      if (!on && input.disabled) input.value = input.dataset.kept;
      input.disabled = on;
    }
  }

  function markInvalid() {
    for (const place of form.querySelectorAll(".err")) {
      const input = place.id && form.querySelector(`[aria-describedby~="${place.id}"]`) || (place.closest("tr") || place).querySelector("[name=sweep_values]");
      if (!input) continue;
      const bad = place.textContent.trim() !== "";
      input.classList.toggle("is-invalid", bad);
      if (bad) input.setAttribute("aria-invalid", "true"); else input.removeAttribute("aria-invalid");
    }
  }

  // A new row proposes no more hosts and ranks than the chosen cluster has.
  function propose(select) {
    const known = JSON.parse(document.getElementById("sweep-row").dataset.values)[form.elements.cluster.value] || {};
    const values = select.closest("tr").querySelector("[name=sweep_values]");
    values.value = known[select.value] || values.value;
  }

  form.addEventListener("click", e => {
    const remove = e.target.closest("[data-remove]");
    if (e.target.closest("[data-add]")) {
      const used = new Set(rows().map(row => row.querySelector("select").value));
      document.querySelector("#sweep tbody").append(document.getElementById("sweep-row").content.cloneNode(true));
      const select = rows().at(-1).querySelector("select"), free = [...select.options].find(o => !used.has(o.value));
      if (free) select.value = free.value;
      propose(select);
      renumber();
      markSwept();
      select.focus();
      changed();
    }
    if (remove) { remove.closest("tr").remove(); renumber(); markSwept(); changed(); }
  });
  form.addEventListener("change", markSwept);

  // Editing the YAML changes nothing until it is applied: keep its events from the form's live preview.
  function edited(e) {
    if (e.target.id !== "yaml") return;
    e.stopPropagation();
    document.getElementById("sync").textContent = "YAML edited, not applied";
  }
  document.addEventListener("input", edited, true);
  document.addEventListener("change", e => {
    if (e.target.id === "yaml") e.stopPropagation();
    if (e.target.id !== "yaml-file" || !e.target.files.length) return;
    e.stopPropagation();
    e.target.files[0].text().then(text => {
      document.getElementById("yaml").value = text;
      document.getElementById("sync").textContent = "File opened, not applied";
    });
    e.target.value = "";
  }, true);
  document.getElementById("yaml-save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([document.getElementById("yaml").value], { type: "application/yaml" }));
    link.download = "experiment.yaml";
    link.click();
    URL.revokeObjectURL(link.href);
  });

  document.addEventListener("htmx:afterSettle", () => { renumber(); markSwept(); markInvalid(); });
})();
