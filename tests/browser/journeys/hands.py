"""A user without a pointer: Tab, Enter, Space and typing, with a record of steps."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

MOST_STOPS = 200
_ROLES = ("link", "button", "textbox", "searchbox", "combobox", "checkbox", "spinbutton", "tab")


class Hands:
    """Keyboard of a user. `steps` are the bold and code words of the guide, in order."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.steps: list[str] = []
        self.pressed = 0

    def press(self, name: str) -> None:
        """Go to a link or button, and press it."""
        self.go_to(name)
        self._key("Enter")

    def tick(self, name: str) -> None:
        """Go to a box, and tick it."""
        self.go_to(name)
        self._key("Space")

    def type(self, name: str, text: str, *, is_step: bool = True) -> None:
        """Replace the text of a field; a text that is not a `step` is not in the guide."""
        self.go_to(name)
        self._key("ControlOrMeta+A")
        self.page.keyboard.type(text)
        self.steps += [text] if is_step else []

    def choose(self, name: str, option: str) -> None:
        """Go to a list of choices, and choose by its first letters."""
        self.go_to(name)
        self.page.keyboard.type(option)
        chosen = self.page.evaluate("document.activeElement.selectedOptions[0].textContent.trim()")
        assert chosen == option, chosen
        self.steps.append(option)

    def keys(self, *names: str) -> None:
        """Keys, or the text that one types, from wherever the focus is."""
        for name in names:
            if len(name) == 1 or name in ("Enter", "Escape"):
                self._key(name)
            else:
                self.page.keyboard.type(name)
            self.steps.append(name)

    def go_to(self, name: str) -> None:
        """Press Tab until the focus is on a control of that name, which can then be seen."""
        self.steps.append(name)
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
        elements = summary.or_(self.page.locator(f'summary[aria-label^="{name}"]'))
        for role in _ROLES:
            elements = elements.or_(self.page.get_by_role(role, name=begun))  # type: ignore[arg-type]
        return elements.filter(visible=True)

    def _key(self, name: str) -> None:
        self.page.keyboard.press(name)
        self.pressed += 1
