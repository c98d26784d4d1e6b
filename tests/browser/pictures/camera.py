"""Pictures of pages after all charts are drawn, with their console errors."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, ConsoleMessage, Page

from config.services.lease import ROOT
from tests.browser.pictures.pages import Picture

SCHEMES: Final = ("light", "dark")
WIDTHS: Final = {1440: 900, 390: 844}
"""Widths of windows with their heights."""
MOST_BYTES: Final = 150_000
_PATIENCE_MS: Final = 60_000

# Charts are drawn when they come into view, so the whole page is rolled through once.
_ROLL: Final = """async () => {
    const frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)));
    for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight) { scrollTo(0, y); await frame(); }
    scrollTo(0, 0);
    await frame();
}"""
_DRAWN: Final = """() => [...document.querySelectorAll(".plot")].every(e => !e.getClientRects().length || e.querySelector(".main-svg"))
    && !document.querySelector(".htmx-request")"""
# Charts out of sight follow when the browser is idle.
_TURNED: Final = """scheme => [...document.querySelectorAll(".plot[data-drawn]")]
    .every(e => !e.getClientRects().length || e.dataset.drawn === scheme)"""
_PAINTED: Final = (
    "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 300))))"
)
# Documents show no path of the machine that took their pictures.
_ELSEWHERE: Final = """root => document.querySelectorAll("pre").forEach(
    pre => { pre.textContent = pre.textContent.replaceAll(root, "/srv/rankwire"); })"""
_WEBP: Final = """async ({png, quality}) => {
    const image = new Image();
    image.src = "data:image/png;base64," + png;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), {width: image.width, height: image.height});
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.toDataURL("image/webp", quality).split(",")[1];
}"""


class Camera:
    """A signed-in browser on one installation."""

    def __init__(self, browser: Browser, address: str, password: str) -> None:
        self._browser, self._address = browser, address
        self.page_errors: list[str] = []
        with self._context(1440, 900) as context:
            page = context.new_page()
            page.goto("/sign-in/")
            page.locator("#id_username").fill("admin")
            page.locator("#id_password").fill(password)
            page.get_by_role("button", name="Sign in", exact=True).click()
            page.wait_for_url(f"{address}/")
            self._session: Any = context.storage_state()

    @contextmanager
    def opened(self, address: str, width: int, height: int, *, signed_in: bool = True) -> Iterator[Page]:
        """The page, drawn, in a window of its own."""
        with self._context(width, height, self._session if signed_in else None) as context:
            page = context.new_page()
            page.set_default_timeout(_PATIENCE_MS)
            page.on("console", lambda message: self._note(address, message))
            page.on("pageerror", lambda error: self.page_errors.append(f"{address}: {error}"))
            page.goto(address)
            settle(page)
            yield page

    def take(self, name: str, address: str, to: Path, *, signed_in: bool = True) -> list[Path]:
        """The whole page in its four forms, as `name-light-1440.png` and so on."""
        taken = []
        for width, height in WIDTHS.items():
            with self.opened(address, width, height, signed_in=signed_in) as page:
                wide = page.evaluate("document.documentElement.scrollWidth")
                if wide > width:
                    self.page_errors.append(f"{address}: {wide} px wide in a window of {width}")
                for scheme in SCHEMES:
                    turn(page, scheme)
                    file = to / f"{name}-{scheme}-{width}.png"
                    page.screenshot(path=file, full_page=True, animations="disabled")
                    taken.append(file)
        return taken

    def illustrate(self, picture: Picture, address: str, to: Path, *, signed_in: bool = True) -> Path:
        """Return a part of the page for documents, as WebP of at most MOST_BYTES."""
        with self.opened(address, picture.width, picture.height, signed_in=signed_in) as page:
            turn(page, picture.scheme)
            page.evaluate(_ELSEWHERE, str(ROOT))
            if picture.at:
                page.locator(picture.at).evaluate("element => element.scrollIntoView({block: 'start'})")
            png = base64.b64encode(page.screenshot(animations="disabled")).decode()
        file = to / f"{picture.name}.webp"
        with self._context(100, 100) as context:
            blank = context.new_page()
            for quality in (0.9, 0.8, 0.7, 0.6, 0.5):
                coded = base64.b64decode(blank.evaluate(_WEBP, {"png": png, "quality": quality}))
                if len(coded) <= MOST_BYTES:
                    break
        file.write_bytes(coded)
        return file

    @contextmanager
    def _context(self, width: int, height: int, session: Any = None) -> Iterator[Any]:
        context = self._browser.new_context(
            base_url=self._address,
            viewport={"width": width, "height": height},
            color_scheme="light",
            reduced_motion="reduce",
            storage_state=session,
        )
        try:
            yield context
        finally:
            context.close()

    def _note(self, address: str, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.page_errors.append(f"{address}: {message.text}")


def settle(page: Page) -> None:
    """Return when everything of the page is drawn."""
    page.wait_for_load_state("load")
    page.evaluate(_ROLL)
    page.wait_for_function(_DRAWN)
    page.evaluate(_PAINTED)


def turn(page: Page, scheme: Any) -> None:
    """Light or dark, with the charts painted anew."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function("scheme => document.documentElement.dataset.bsTheme === scheme", arg=scheme)
    page.wait_for_function(_TURNED, arg=scheme)
    page.evaluate(_PAINTED)
