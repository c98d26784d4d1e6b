/* The list of workloads: an address such as /workloads/#water, of a former page of all of them, leads to the workload's page. */
(function () {
  "use strict";
  const link = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)))?.querySelector("td a");
  if (link) location.replace(link.href);
})();
