"""``script/screenshots``: every main page, light and dark, wide and narrow."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Final

from config.services.lease import ROOT
from tests.browser.chromium import chromium
from tests.browser.journeys.installation import Installation
from tests.browser.pictures.camera import Camera
from tests.browser.pictures.experiments import measured, places
from tests.browser.pictures.pages import PAGES
from tests.browser.pictures.sheet import write_sheet

GUIDES: Final = ROOT / "docs" / "images"


def main(arguments: list[str]) -> int:
    """Exit with 1 if a page has console errors, or is wider than its window."""
    options = parse(arguments)
    to = options.to.resolve()
    to.mkdir(parents=True, exist_ok=True)
    if options.fresh:
        shutil.rmtree(to / "laboratory", ignore_errors=True)
    chosen = [page for page in PAGES if not options.pages or page.name in options.pages]
    if options.guides:
        chosen = [page for page in chosen if page.pictures]
    taken = []
    with Installation(to / "laboratory") as installation, chromium() as browser:
        camera = Camera(browser, installation.address, installation.password)
        words: dict[str, str] = {}
        if any("{" in page.address for page in chosen):
            print("measuring what is missing; some ten minutes the first time", flush=True)
            words = places(installation, camera, measured(installation))
        for page in chosen:
            address = page.address.format(**words)
            print(f"{page.name}: {address}", flush=True)
            if options.guides:
                GUIDES.mkdir(exist_ok=True)
                for picture in page.pictures:
                    print(f"  {camera.illustrate(picture, address, GUIDES, signed_in=page.signed_in).name}", flush=True)
            else:
                before = len(camera.page_errors)
                taken.append((page.name, camera.take(page.name, address, to, signed_in=page.signed_in)))
                if page.complains:
                    del camera.page_errors[before:]
    if taken:
        print(f"look at {write_sheet(taken, camera.page_errors, to)}")
    print("".join(f"{line}\n" for line in camera.page_errors), end="", file=sys.stderr)
    return 1 if camera.page_errors else 0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="script/screenshots",
        description="Take every main page in four forms; what they show is measured on the test-bed and kept for the next time.",
    )
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="only these pages, as the contact sheet calls them")
    parser.add_argument(
        "--to", type=Path, default=Path("var/screenshots"), metavar="DIR", help="where to (default %(default)s)"
    )
    parser.add_argument(
        "--guides", action="store_true", help="take what README and guides show, into docs/images, instead"
    )
    parser.add_argument("--fresh", action="store_true", help="measure everything anew")
    options = parser.parse_args(arguments)
    if unknown := set(options.pages) - {page.name for page in PAGES}:
        parser.error(f"no page is called {', '.join(sorted(unknown))}")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
