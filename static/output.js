/* Lines of a trial's output have addresses, #L120; one that is not shown is requested with the lines around it. */
(function () {
  "use strict";
  const text = document.getElementById("output-text");
  const line = () => (/^#L([0-9]+)$/.exec(location.hash) || [])[1];
  const isIn = () => document.getElementById(`L${line()}`);

  // The server does not see the hash; other requests than the first say what they show.
  let isFirst = true;
  document.addEventListener("htmx:configRequest", e => {
    if (e.target !== text || !isFirst) return;
    isFirst = false;
    if (line()) e.detail.parameters.line = line();
  });
  // A line that came later becomes the target of the address only by going there again.
  document.addEventListener("htmx:afterSettle", e => { if (e.target === text && line() && isIn()) location.replace(location.hash); });
  addEventListener("hashchange", () => {
    if (!line() || isIn()) return;
    const address = new URL(text.getAttribute("hx-get"), location.href), file = text.querySelector("[name=file]");
    address.search = new URLSearchParams({ file: file ? file.value : "", line: line() });
    htmx.ajax("GET", address.href, { target: text, source: text });
  });
})();
