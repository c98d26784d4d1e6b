/* Inserts a part on its own line at the cursor in the text of a report. */
(function () {
  "use strict";
  document.addEventListener("click", e => {
    const button = e.target.closest("[data-insert]"), box = button && document.getElementById("id_text");
    if (!box) return;
    const before = box.value.slice(0, box.selectionStart), after = box.value.slice(box.selectionEnd);
    const above = !before || before.endsWith("\n\n") ? "" : before.endsWith("\n") ? "\n" : "\n\n";
    const below = !after || after.startsWith("\n\n") ? "\n" : after.startsWith("\n") ? "\n" : "\n\n";
    box.value = before + above + button.dataset.insert + below + after;
    box.selectionStart = box.selectionEnd = (before + above + button.dataset.insert + below).length;
    box.focus();
  });
})();
