/* The new-experiment form: rows of the sweep, swept fields, and YAML files. The preview itself is the server's. */
(function () {
  "use strict";
  const form = document.getElementById("new");
  const rows = () => [...document.querySelectorAll("#sweep tbody tr")];
  const source = form.elements.source;
  const changed = () => { source.value = "form"; form.dispatchEvent(new Event("change")); };

  // The server identifies rows by number, so renumber them after each change.
  function renumber() {
    const parts = { ".err": "err-sweep", ".hint": "values", "td.num > span": "count" };
    rows().forEach((row, i) => { for (const [part, name] of Object.entries(parts)) row.querySelector(part).id = `${name}-${i}`; });
  }

  // A swept parameter has no constant: its field is disabled and keeps its value.
  function markSwept() {
    const swept = new Set(rows().map(row => row.querySelector("select").value));
    for (const input of form.querySelectorAll("[data-parameter]")) {
      const on = swept.has(input.dataset.parameter);
      if (on && !input.disabled) { input.dataset.kept = input.value; input.value = "swept"; }
      if (!on && input.disabled) input.value = input.dataset.kept;
      input.disabled = on;
    }
  }

  // Settings that the chosen cluster cannot apply are neither shown nor sent.
  function fitCluster() {
    for (const part of form.querySelectorAll("[data-without]")) {
      part.disabled = part.hidden = part.dataset.without.split(" ").includes(form.elements.cluster.value);
    }
  }

  function markInvalid() {
    for (const place of form.querySelectorAll(".err")) {
      const input = place.id && form.querySelector(`[aria-describedby~="${place.id}"]`) || (place.closest("tr") || place).querySelector("[name=sweep_values]");
      if (!input) continue;
      const bad = !place.classList.contains("warn") && place.textContent.trim() !== "";
      input.classList.toggle("is-invalid", bad);
      if (bad) input.setAttribute("aria-invalid", "true"); else input.removeAttribute("aria-invalid");
    }
  }

  // A new row proposes the choices of its parameter, or at most the hosts and ranks of the selected cluster.
  function propose(select) {
    const known = JSON.parse(document.getElementById("sweep-row").dataset.values)[form.elements.cluster.value] || {};
    const values = select.closest("tr").querySelector("[name=sweep_values]");
    values.value = values.defaultValue = known[select.value] || values.value;
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
  // Until the server answers, the preview and the number on the Start button are those of earlier values.
  for (const type of ["input", "change"]) {
    form.addEventListener(type, e => {
      if (["chosen", "project"].includes(e.target.name) || e.target.id === "yaml-file") return;
      if (source.value === "form") document.getElementById("sync").textContent = "Updating the preview …";
      document.getElementById("startbar").setAttribute("aria-busy", "true");
    });
  }
  // A typed unit replaces the unit beside the field.
  form.addEventListener("input", e => {
    const unit = e.target.closest(".input-group")?.querySelector(".input-group-text");
    if (unit) unit.hidden = /[a-z]\s*$/i.test(e.target.value);
  });
  form.addEventListener("change", e => {
    const values = e.target.name === "sweep_name" && e.target.closest("tr").querySelector("[name=sweep_values]");
    if (values && values.value === values.defaultValue) propose(e.target);
  });
  form.addEventListener("change", markSwept);
  form.addEventListener("change", fitCluster);

  // Another workload brings its fields first, and then its preview, which has errors for these fields.
  for (const type of ["input", "change"]) {
    form.addEventListener(type, e => { if (e.target.name === "workload") e.stopImmediatePropagation(); });
  }
  // A preview of the fields that are replaced has no place for its errors. Text typed until they are replaced stays.
  const inputs = () => [...document.querySelectorAll("#steps [id][name]")];
  let sent = new Map(), typed = [];
  form.addEventListener("htmx:beforeRequest", e => {
    if (e.detail.target.id === "steps") {
      htmx.trigger(form, "htmx:abort");
      sent = new Map(inputs().map(input => [input.id, input.value]));
    }
    else if (e.target === form && form.querySelector("#steps .htmx-request")) e.preventDefault();
  });

  document.addEventListener("htmx:beforeSwap", e => {
    if (e.detail.target.id === "steps") typed = inputs().filter(({ id, value }) => sent.has(id) && sent.get(id) !== value);
  });
  document.addEventListener("htmx:afterSwap", e => {
    if (e.detail.target.id !== "steps") return;
    for (const { id, value } of typed.splice(0)) if (document.getElementById(id)) document.getElementById(id).value = value;
  });

  // The preview follows what was edited last. Edits of the form would overwrite YAML that has errors.
  function holdForm(on, failed = on) {
    document.getElementById("steps").inert = on;
    document.getElementById("yaml-discard").hidden = !on;
    document.getElementById("form-locked").hidden = !failed;
  }
  form.addEventListener("input", e => {
    if (e.target.name === "chosen" || e.target.id === "yaml-file") return;
    source.value = e.target.id === "yaml" ? "yaml" : "form";
    if (source.value === "yaml") { document.getElementById("sync").textContent = "Reading the YAML …"; holdForm(true, !document.getElementById("form-locked").hidden); }
  }, true);
  document.addEventListener("change", e => {
    if (e.target.id !== "yaml-file" || !e.target.files.length) return;
    e.stopPropagation();
    const yaml = document.getElementById("yaml");
    e.target.files[0].text().then(text => { yaml.value = text; yaml.dispatchEvent(new Event("input", { bubbles: true })); });
    e.target.value = "";
  }, true);
  for (const button of document.querySelectorAll("[data-discard-yaml]")) button.addEventListener("click", changed);
  document.getElementById("yaml-save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([document.getElementById("yaml").value], { type: "application/yaml" }));
    link.download = "experiment.yaml";
    link.click();
    URL.revokeObjectURL(link.href);
  });

  const settled = () => {
    renumber();
    markSwept();
    fitCluster();
    markInvalid();
    holdForm(source.value === "yaml" && document.querySelector("#yaml-errors .note") !== null);
  };
  document.addEventListener("htmx:afterSettle", settled);
  settled();
})();
