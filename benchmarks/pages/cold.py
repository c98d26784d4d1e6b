"""Bytes of the first view of the main pages with an empty cache.

    script/server
    python -m benchmarks.pages.cold http://127.0.0.1:8000 var/admin-password [--experiment SLUG]

Each page is opened by a new browser that is signed in. The bytes are those that Chromium received (headers and compressed bodies) until
the network was idle, by kind of file. *Later* is a second view in the same browser.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin

from playwright.sync_api import Browser, Page

from benchmarks.pages.contents import addresses, sign_in
from tests.browser.chromium import chromium

PAGES: Final = ("home", "experiments", "experiment", "trials", "trial", "compare", "explore", "new")
KINDS: Final = ("Document", "Stylesheet", "Script", "Font", "Image", "XHR")
LIMIT_KB: Final = 300


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", help="address that script/server prints")
    parser.add_argument("password", type=Path, help="file with the password of admin")
    parser.add_argument("--experiment", help="slug of an ended experiment; else the first of the list")
    parser.add_argument("--files", action="store_true", help="print each file as well")
    options = parser.parse_args()
    with chromium() as browser:
        page = browser.new_page()
        sign_in(page, options.site, options.password)
        paths = addresses(page, options.experiment)
        state = page.context.storage_state()
        print(f"{'kB':12}" + "".join(f"{kind:>11}" for kind in ("all", *KINDS, "later")))
        missed = 0
        for name in PAGES:
            if name not in paths:
                continue
            first, later = views(browser, state, urljoin(options.site, paths[name]), list_files=options.files)
            total = sum(first.values())
            missed += total > 1000 * LIMIT_KB
            columns = (total, *(first[kind] for kind in KINDS), sum(later.values()))
            print(f"{name:12}" + "".join(f"{size / 1000:11.1f}" for size in columns), flush=True)
    return 1 if missed else 0


def views(browser: Browser, state: Any, address: str, *, list_files: bool = False) -> tuple[Counter[str], Counter[str]]:
    """Return bytes by kind of a first view and of a later one."""
    context = browser.new_context(storage_state=state, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    received = [view(page, address, list_files=list_files and number == 0) for number in range(2)]
    context.close()
    return received[0], received[1]


def view(page: Page, address: str, *, list_files: bool) -> Counter[str]:
    """Return the bytes of one view by kind."""
    requests: dict[str, tuple[str, str]] = {}
    received: Counter[str] = Counter()
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.on(
        "Network.responseReceived",
        lambda event: requests.__setitem__(event["requestId"], (event["type"], event["response"]["url"])),
    )

    def finished(event: Any) -> None:
        kind, url = requests.get(event["requestId"], ("Other", ""))
        received["XHR" if kind == "Fetch" else kind] += int(event["encodedDataLength"])
        if list_files:
            print(f"  {event['encodedDataLength']:9.0f} {kind:10} {url}")

    session.on("Network.loadingFinished", finished)
    page.goto(address)
    page.wait_for_load_state("networkidle")
    session.detach()
    return received


if __name__ == "__main__":
    sys.exit(main())
