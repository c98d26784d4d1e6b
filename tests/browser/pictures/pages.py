"""The main pages, and which of them the README and the guides show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a page in a document: a window of this size from an element on."""

    name: str
    scheme: str = "light"
    width: int = 1440
    height: int = 900
    at: str = ""
    """The element at the top of the window; the head of the page if empty."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page by the name of its pictures."""

    name: str
    address: str
    pictures: tuple[Picture, ...] = ()
    signed_in: bool = True
    complains: bool = False
    """The browser reports in its console that such a page is missing."""


PAGES: Final = (
    Page("home", "/", (Picture("home"),)),
    Page("experiments", "/experiments/"),
    Page("new", "/experiments/new/", (Picture("new"),)),
    Page("new-network", "/experiments/new/?network={water}"),
    Page(
        "experiment",
        "/experiments/{slower}/",
        (Picture("experiment", height=1240), Picture("experiment-phone", "dark", 390, 844)),
    ),
    Page("experiment-charts", "/experiments/{water}/?tab=charts"),
    Page("experiment-configurations", "/experiments/{water}/?tab=configurations"),
    Page("experiment-setup", "/experiments/{water}/?tab=setup"),
    Page("experiment-wide-area", "/experiments/{wide_area}/"),
    Page("experiment-needs", "/experiments/{needs}/"),
    Page("edit", "/experiments/{water}/edit/"),
    Page("share", "/experiments/{water}/share/"),
    Page("published", "/experiments/guster-2007-water/"),
    Page("published-hpl", "/experiments/eadline-2006-hpl/"),
    Page("published-staging", "/experiments/york-staging/"),
    Page("trials", "/trials/"),
    Page("trial", "/trials/{trial}/", (Picture("trial"),)),
    Page("trial-traced", "/trials/{traced}/"),
    Page("trial-time", "/trials/{traced}/?tab=time"),
    Page("trial-wire", "/trials/{trial}/?tab=wire"),
    Page("trial-mpi", "/trials/{traced}/?tab=mpi"),
    Page("trial-measurements", "/trials/{trial}/?tab=measurements"),
    Page("trial-packets", "/trials/{trial}/?tab=packets", (Picture("trial-packets"),)),
    Page("trial-output", "/trials/{trial}/?tab=output"),
    Page("trial-environment", "/trials/{trial}/?tab=environment"),
    Page("compare", "/compare/?of=e:{water},e:{slower}", (Picture("compare", height=1000),)),
    Page("studies", "/studies/"),
    Page("reports", "/reports/"),
    Page("report", "/reports/{report}/", (Picture("report"),)),
    Page("report-edit", "/reports/{report}/edit/"),
    Page("explore", "/explore/?workload=water", (Picture("explore"),)),
    Page("histories", "/history/"),
    Page("history", "/history/{configuration}/testbed/"),
    Page("network-index", "/network/"),
    Page("network", "/network/{needs}/", (Picture("network"),)),
    Page("prediction", "/network/predictions/{prediction}/"),
    Page("networks", "/networks/"),
    Page("clusters", "/clusters/"),
    Page("server", "/server/"),
    Page("cluster", "/clusters/testbed/", (Picture("cluster"),)),
    Page("cluster-new", "/clusters/new/?kind=ssh", (Picture("cluster-new"),)),
    Page("cluster-facts", "/clusters/testbed/facts/"),
    Page("workloads", "/workloads/"),
    Page("program-new", "/workloads/new/", (Picture("program-new"),)),
    Page("help", "/help/"),
    Page("help-search", "/help/?q=retransmissions"),
    Page("guide", "/help/first-experiment/"),
    Page("guide-server", "/help/run-the-server/"),
    Page("account", "/account/", (Picture("account", height=600),)),
    Page("people", "/people/"),
    Page("projects", "/projects/"),
    Page("project", "/projects/default/"),
    Page("changes", "/projects/default/changes/"),
    Page("quotas", "/quotas/"),
    Page("tasks", "/tasks/"),
    Page("bundle", "/bundles/new/?of=e:{water}"),
    Page("import", "/imports/"),
    Page("not-found", "/experiments/nothing-is-called-so/", complains=True),
    Page("sign-in", "/sign-in/", signed_in=False),
)
