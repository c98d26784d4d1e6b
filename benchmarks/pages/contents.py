"""Words, numbers, panels, controls, height and Tab stops of the main pages.

    script/server
    python -m benchmarks.pages.contents http://127.0.0.1:8000 var/admin-password [--only home trial]

*First* are the words within 1440x900 at the top of
the page; a word is what spaces surround, if it holds a letter or digit, and counts as a number if it holds a digit. A
number and its unit, joined by a no-break space, are one word.
Labels of charts count, hidden and folded text does not. *Stops* are the presses of Tab from the top of the page until
the focus has left the main content.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urljoin

from playwright.sync_api import Page

from tests.browser.chromium import chromium

WIDE, NARROW = (1440, 900), (390, 844)
MOST_STOPS = 999
COUNT = """() => {
  const counts = {first: 0, words: 0, numbers: 0};
  const seen = element => element.checkVisibility({opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: false})
    && !element.closest('.visually-hidden, .skip-link');
  const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  while (nodes.nextNode()) {
    const node = nodes.currentNode, element = node.parentElement;
    if (['SCRIPT', 'STYLE', 'OPTION', 'TEMPLATE'].includes(element.tagName) || !seen(element)) continue;
    for (const match of node.data.matchAll(/[^ \\t\\n]*[\\p{L}\\p{N}][^ \\t\\n]*/gu)) {
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      const box = range.getBoundingClientRect();
      if (!box.width) continue;
      counts.words += 1;
      counts.numbers += /\\p{N}/u.test(match[0]);
      counts.first += box.top < innerHeight && box.bottom > 0 && box.left < innerWidth && box.right > 0;
    }
  }
  const visible = selector => [...document.querySelectorAll(selector)].filter(seen).length;
  counts.panels = visible('.panel');
  counts.controls = visible('a[href], button, input:not([type=hidden]), select, textarea, summary, [role=button]');
  return counts;
}"""
FOCUS = """() => {
  const main = document.querySelector('main'), focus = document.activeElement;
  if (main.contains(focus)) return 'main';
  return main.compareDocumentPosition(focus) & Node.DOCUMENT_POSITION_FOLLOWING ? 'after' : 'before';
}"""


def sign_in(page: Page, site: str, password: Path) -> None:
    """Sign in as admin, with the password of a file."""
    page.goto(urljoin(site, "/sign-in/"))
    page.fill("#id_username", "admin")
    page.fill("#id_password", password.read_text().strip())
    page.get_by_role("button", name="Sign in", exact=True).click()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", help="address that script/server prints")
    parser.add_argument("password", type=Path, help="file with the password of admin")
    parser.add_argument("--experiment", help="slug of an ended experiment; else the first of the list")
    parser.add_argument("--only", nargs="+", default=[], help="names of pages")
    options = parser.parse_args()
    with chromium() as browser:
        page = browser.new_page()
        sign_in(page, options.site, options.password)
        pages = addresses(page, options.experiment)
        if unknown := set(options.only) - pages.keys():
            parser.error(f"no such page: {', '.join(sorted(unknown))}; there are {', '.join(pages)}")
        names = ("first", "words", "numbers", "panels", "controls", "1440 px", "390 px", "stops")
        print(f"{'page':12}" + "".join(f"{name:>10}" for name in names))
        for name in options.only or pages:
            counts = counts_of(page, pages[name])
            print(f"{name:12}" + "".join(f"{counts[column]:>10}" for column in names), flush=True)
    return 0


def addresses(page: Page, slug: str | None) -> Mapping[str, str]:
    """Return the main pages by name, of one experiment and its first trial."""

    def links(path: str, beginning: str) -> list[str]:
        page.goto(urljoin(page.url, path))
        paths = page.eval_on_selector_all(
            "main a", "links => links.map(link => link.getAttribute('href').split('?')[0])"
        )
        return list(dict.fromkeys(link for link in paths if link.startswith(beginning) and link.count("/") > 2))

    skipped = ("/experiments/new/", "/experiments/chosen/")
    slugs = [link.split("/")[2] for link in links("/experiments/", "/experiments/") if not link.startswith(skipped)]
    if not slugs:
        raise SystemExit("the site has no experiment")
    chosen = slug or slugs[0]
    trials = links(f"/trials/?experiment={chosen}", "/trials/")
    histories = [link for link in links("/history/", "/history/") if "/chosen/" not in link]
    clusters = [link for link in links("/clusters/", "/clusters/") if not link.startswith("/clusters/new")]
    pair = [f"of=e:{name}" for name in dict.fromkeys([chosen, *slugs])][:2]
    return {
        "home": "/",
        "experiments": "/experiments/",
        "experiment": f"/experiments/{chosen}/",
        "trials": "/trials/",
        **({"trial": next(link for link in trials if link.split("/")[2].isdecimal())} if trials else {}),
        "workloads": "/workloads/",
        "studies": "/studies/",
        "explore": "/explore/",
        "compare": "/compare/?" + "&".join(pair),
        "histories": "/history/",
        **({"history": histories[0]} if histories else {}),
        "new": "/experiments/new/",
        "clusters": "/clusters/",
        **({"cluster": clusters[0]} if clusters else {}),
        "help": "/help/",
    }


def counts_of(page: Page, path: str) -> dict[str, int]:
    """Return what the page shows at both widths, once its later parts are loaded."""
    counts: dict[str, int] = {}
    for width, height in (NARROW, WIDE):
        page.set_viewport_size({"width": width, "height": height})
        page.goto(urljoin(page.url, path))
        page.wait_for_load_state("networkidle")
        counts[f"{width} px"] = page.evaluate("document.documentElement.scrollHeight")
    return {**counts, **page.evaluate(COUNT), "stops": stops_of(page)}


def stops_of(page: Page) -> int:
    """Return presses of Tab until the focus leaves the main content."""
    entered = False
    for presses in range(1, MOST_STOPS + 1):
        page.keyboard.press("Tab")
        where = page.evaluate(FOCUS)
        entered |= where == "main"
        if entered and where != "main":
            return presses
    return MOST_STOPS


if __name__ == "__main__":
    sys.exit(main())
