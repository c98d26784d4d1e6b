"""A user without a pointer: Tab, Enter, Space and typing, with a record of steps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from playwright.sync_api import Locator, Page, expect

MOST_STOPS = 200
FOCUSED = "all => all.includes(document.activeElement)"
IN_GROUP = """all => {
    const group = document.activeElement.closest('[data-roving]');
    return group !== null && !all.includes(document.activeElement) && all.some(one => group.contains(one) && !one.closest('.pop > div'));
}"""
"""The focus is in a toolbar or a table in which arrow keys reach the control."""
_ROLES = ("link", "button", "textbox", "searchbox", "combobox", "checkbox", "spinbutton", "tab")


class Hands:
    """Keyboard of a user. `steps` are the bold and code words of the guide, in order."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.steps: list[str] = []
        self.pressed = 0

    def follow(self, instructions: Sequence[tuple[str, str]]) -> None:
        """Carry out steps of a guide.

        A control gets the text after it, or is pressed; text without a control is keys.
        """
        words = list(instructions)
        while words:
            control, key = words.pop(0)
            if key:
                self.keys(key)
            elif words and words[0][1]:
                self.type(control, words.pop(0)[1])
            else:
                self.press(control)

    def press(self, name: str) -> None:
        """Go to a link, a button or a box, and press or tick it."""
        self.go_to(name)
        self._key("Space" if self._focused("type") == "checkbox" else "Enter")

    def type(self, name: str, text: str, *, is_step: bool = True) -> None:
        """Replace the text of a field, or choose it in a list.

        A text that is not a step is not in the guide.
        """
        self.go_to(name)
        is_list = self._focused("tagName") == "SELECT"
        if not is_list:
            self._key("ControlOrMeta+A")
        self.page.keyboard.type(text)
        if is_list:
            assert self.page.evaluate("document.activeElement.selectedOptions[0].textContent.trim()") == text
        self.steps += [text] if is_step else []

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
        exact = self._named(name, "$")
        target = exact if exact.count() else target
        stops: list[str] = []
        for _ in range(MOST_STOPS):
            if not stops and self._is_at(target) and self._focused("tagName") == "INPUT":
                return  # a field that the page has focused
            self._key("Tab")
            if target.evaluate_all(IN_GROUP):
                self._key("Home")
                while not target.evaluate_all(FOCUSED) and len(stops) < MOST_STOPS:
                    stops.append("in a toolbar or a table")
                    self._key("ArrowRight")
            if self._is_at(target):
                assert self.page.locator(":focus").is_visible()
                return
            stops.append(self.page.evaluate("document.activeElement.textContent.trim().slice(0, 30)"))
        raise AssertionError(f"Tab never reached {name!r}; it stopped at {stops}")

    def _is_at(self, target: Locator) -> bool:
        return bool(target.evaluate_all("all => all.includes(document.activeElement)"))

    def _named(self, name: str, end: str = r"\b") -> Locator:
        begun = re.compile(rf"^{re.escape(name)}{end}")
        summary = self.page.locator("summary").filter(has_text=re.compile(rf"^\s*{re.escape(name)}"))
        elements = summary.or_(self.page.locator(f'summary[aria-label^="{name}"]'))
        for role in _ROLES:
            elements = elements.or_(self.page.get_by_role(role, name=begun))  # type: ignore[arg-type]
        return elements.filter(visible=True)

    def _focused(self, property_name: str) -> Any:
        return self.page.evaluate("name => document.activeElement[name]", property_name)

    def _key(self, name: str) -> None:
        self.page.keyboard.press(name)
        self.pressed += 1
