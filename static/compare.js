/* Find settings, facts and metrics of a comparison by their names, or only those that differ. */
(function () {
  "use strict";
  const form = document.getElementById("find"), [words, only] = form.querySelectorAll("input");
  const sections = ["metrics", "configuration", "environment"].map(name => document.getElementById(name));
  const rows = sections.flatMap(section => [...section.querySelectorAll("tbody tr")]);
  const charts = document.querySelectorAll("section[id^='c-']");
  const folds = sections.flatMap(section => [...section.querySelectorAll("details:has(tbody)")]);

  const nameOf = row => `${row.querySelector("th").textContent} ${row.dataset.metric ?? ""}`;

  function show() {
    const asked = words.value.toLowerCase().split(/\s+/).filter(Boolean), isAsked = asked.length > 0 || only.checked;
    const isNamed = name => asked.every(word => ` ${name.toLowerCase().replace(/[\s_.,(–-]+/g, " ")}`.includes(` ${word}`));
    for (const row of rows) {
      row.hidden = !isNamed(nameOf(row)) || (only.checked && "same" in row.dataset);
    }
    const shown = rows.filter(row => !row.hidden);
    for (const fold of folds) {
      fold.hidden = isAsked && !shown.some(row => fold.contains(row));
      fold.open = asked.length > 0 && !fold.hidden;
    }
    for (const section of sections) section.hidden = isAsked && !shown.some(row => section.contains(row));
    for (const chart of charts) {
      chart.hidden = !isNamed(chart.querySelector("h3").textContent) || (only.checked && !shown.length);
    }
    const same = rows.filter(row => isNamed(nameOf(row))).length, isNone = asked.length && !same;
    const none = shown.length ? "" : isNone ? ": no setting, fact or metric at this point has this name" : `: no clear difference; ${same} without “Differences only”`;
    form.querySelector("output").textContent = isAsked ? `${shown.length} of ${rows.length} rows${none}` : "";
  }

  form.hidden = false;
  form.addEventListener("input", show);
  form.addEventListener("submit", e => e.preventDefault());
})();
