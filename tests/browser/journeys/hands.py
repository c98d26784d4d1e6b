"""Somebody without a pointer: goes with Tab, presses Enter and Space, types. What was done is kept, as the guide tells it."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

MOST_STOPS = 200
_ROLES = ("link", "button", "textbox", "searchbox", "combobox", "checkbox", "spinbutton", "tab")


class Hands:
    """Nothing here clicks. `told` is what the guide has in bold and as code, in its order."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.told: list[str] = []
        self.pressed = 0

    def press(self, name: str) -> None:
        """Go to a link or button, and press it."""
        self.go_to(name)
        self._key("Enter")

    def tick(self, name: str) -> None:
        """Go to a box, and tick it."""
        self.go_to(name)
        self._key("Space")

    def type(self, name: str, text: str, *, told: bool = True) -> None:
        """Go to a field, and write into it in place of what stands there; a text that is not `told` is the reader's own."""
        self.go_to(name)
        self._key("ControlOrMeta+A")
        self.page.keyboard.type(text)
        self.told += [text] if told else []

    def choose(self, name: str, option: str) -> None:
        """Go to a list of choices, and choose by its first letters."""
        self.go_to(name)
        self.page.keyboard.type(option)
        chosen = self.page.evaluate("document.activeElement.selectedOptions[0].textContent.trim()")
        assert chosen == option, chosen
        self.told.append(option)

    def keys(self, *names: str) -> None:
        """Keys, or the text that one types, from wherever the focus is."""
        for name in names:
            if len(name) == 1 or name in ("Enter", "Escape"):
                self._key(name)
            else:
                self.page.keyboard.type(name)
            self.told.append(name)

    def go_to(self, name: str) -> None:
        """Press Tab until the focus is on a control of that name, which can then be seen."""
        self.told.append(name)
        target = self._named(name)
        expect(target.first).to_be_visible()
        stops: list[str] = []
        for _ in range(MOST_STOPS):
            self._key("Tab")
            if target.evaluate_all("all => all.includes(document.activeElement)"):
                assert self.page.locator(":focus").is_visible()
                return
            stops.append(self.page.evaluate("document.activeElement.textContent.trim().slice(0, 30)"))
        raise AssertionError(f"Tab never reached {name!r}; it stopped at {stops}")

    def _named(self, name: str) -> Locator:
        begun = re.compile(rf"^{re.escape(name)}\b")
        summary = self.page.locator("summary").filter(has_text=re.compile(rf"^\s*{re.escape(name)}"))
        found = summary.or_(self.page.locator(f'summary[aria-label^="{name}"]'))
        for role in _ROLES:
            found = found.or_(self.page.get_by_role(role, name=begun))  # type: ignore[arg-type]
        return found.filter(visible=True)

    def _key(self, name: str) -> None:
        self.page.keyboard.press(name)
        self.pressed += 1
