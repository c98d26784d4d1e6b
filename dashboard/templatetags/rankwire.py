"""What templates need to show: icons, chips of states, numbers and durations."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from django import template
from django.forms import BoundField
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from analysis import numbers
from dashboard.help.terms import term
from dashboard.requests.idempotency import FIELD
from dashboard.states import chip_of
from experiments.models import LastSeen

register = template.Library()


@register.simple_tag
def icon(name: str) -> SafeString:
    """One icon of static/icons.svg, hidden from assistive technology: a word always stands beside it."""
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#{}"/></svg>', static("icons.svg"), name)


@register.simple_tag
def once() -> SafeString:
    """The field of a form by which two presses of its button are known for one."""
    return format_html('<input type="hidden" name="{}" value="{}">', FIELD, secrets.token_urlsafe(16))


def _explained(context: Mapping[str, Any], classes: str, inside: str, meaning: str, address: str = "") -> SafeString:
    """Return words with their meaning on hover and focus; a link to their definition, except for visitors."""
    if not address or getattr(context.get("user"), "is_visitor", False):
        return format_html('<span class="{}" tabindex="0" data-explains="{}">{}</span>', classes, meaning, inside)
    return format_html('<a class="{}" href="{}" data-explains="{}">{}</a>', classes, address, meaning, inside)


@register.simple_tag(takes_context=True)
def explain(context: Mapping[str, Any], words: str, name: str = "", meaning: str = "") -> SafeString:
    """Words that say what they mean on hover and focus, and lead to their definition.

    ``name`` is the id of a metric or of a row of docs/terms.md; without one the words themselves are looked up. What is
    defined nowhere, such as a parameter of somebody's own program, is shown with the ``meaning`` given, or as it is.
    """
    found = term(name or words)
    if found is not None:
        return _explained(context, "term", words, found.meaning, found.address)
    return _explained(context, "term", words, meaning) if meaning else format_html("{}", words)


_PROCESSES: Final = {"worker": "No worker", "beat": "No beat process", "background": "No background worker"}


@register.inclusion_tag("parts/_missing.html")
def missing(*roles: str) -> dict[str, Any]:
    """Warn of each of the processes that has no heartbeat, on a page that waits for it."""
    seen = LastSeen.of_roles()
    rows = [
        {"role": role, "name": _PROCESSES[role], "age_s": seen[role].age_s} for role in roles if not seen[role].is_alive
    ]
    return {"missing": rows}


@register.filter
def meaning(words: str) -> str:
    """What a word of docs/terms.md means; empty for any other."""
    found = term(words)
    return found.meaning if found else ""


@register.simple_tag(takes_context=True)
def chip(
    context: Mapping[str, Any], state: str, words: str = "", bare: bool = False, explained: bool = False
) -> SafeString:
    """State as icon, word and colour; what it means on hover, and where it is ``explained`` on focus, with a link, too."""
    shown = chip_of(state)
    found = term(f"state.{state.lower()}") or term(f"trust.{state.lower()}") or term(state.lower())
    classes = f"chip {shown.tone}{' bare' if bare else ''}"
    inside = format_html("{}{}", icon(shown.icon), words or shown.word)
    if found is None:
        return format_html('<span class="{}">{}</span>', classes, inside)
    if explained:
        return _explained(context, classes, inside, found.meaning, found.address)
    return format_html('<span class="{}" data-explains="{}">{}</span>', classes, found.meaning, inside)


@register.simple_tag
def square(state: str) -> SafeString:
    """One trial in a strip that only shows progress."""
    shown = chip_of(state)
    return format_html('<i class="{}">{}</i>', shown.tone, "" if shown.tone == "ok" else shown.glyph)


@register.simple_tag
def trial_square(mark: dict[str, str], point: str) -> SafeString:
    """One trial in a strip, as a link with an accessible name."""
    shown = chip_of(mark["state"])
    name = f"{point}, {mark['name']}: {shown.word.lower()}" + (f" ({mark['message']})" if mark["message"] else "")
    return format_html(
        '<a class="{}{}" href="{}" title="{}" aria-label="{}">{}</a>',
        shown.tone,
        " warm" if mark["kind"] == "warmup" else "",
        reverse("trial", args=[mark["pk"]]),
        name,
        name,
        shown.glyph,
    )


_FOREIGN_TAG = re.compile(r"<(?!/?extra>)")


@register.filter
def figure(value: dict[str, Any]) -> SafeString:
    """A figure as JSON that cannot end its script element, in which names are text.

    Plotly takes tags in any text for markup, links with their addresses too: only those that our charts write are left.
    """
    text = _FOREIGN_TAG.sub("&lt;", json.dumps(value, separators=(",", ":"), allow_nan=False))
    for character, escaped in (("<", "\\u003C"), (">", "\\u003E"), ("&", "\\u0026")):
        text = text.replace(character, escaped)
    return mark_safe(text)  # noqa: S308 (JSON with the three characters of HTML escaped)


@register.filter
def plain(identifier: str) -> str:
    """An identifier as words: 'dropped_by_kernel' -> 'Dropped by kernel'."""
    return str(identifier).replace("_", " ").capitalize()


@register.filter
def cell(value: Any) -> str:
    """A value of any kind in a table: numbers to four digits, nothing as a dash."""
    if value is None:
        return numbers.NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    return numbers.significant(value)


@register.filter
def written(value: Any) -> str:
    """A value of a specification as people write it: lists with commas, 'not set' for nothing."""
    if value is None:
        return "not set"
    if isinstance(value, list):
        return ", ".join(written(item) for item in value) or "none"
    return "yes" if value is True else "no" if value is False else str(value)


@register.simple_tag
def amount(value: Any, unit: str = "") -> SafeString:
    """A number with its unit set apart; a dash for what a template did not find (None or '')."""
    number, shown_unit = numbers.quantity(None if value == "" else value, unit)
    if not shown_unit:
        return format_html("{}", number)
    return format_html('{}<span class="u">{}</span>', number, shown_unit)


@register.filter
def grouped(value: Any) -> str:
    """A whole number with its thousands set apart."""
    return numbers.NOTHING if value in (None, "") else numbers.grouped(int(value))


@register.filter
def span(seconds: Any) -> str:
    """Seconds as a duration for people."""
    return numbers.duration(None if seconds in (None, "") else float(seconds))


@register.filter
def filesize(value: Any) -> str:
    """Bytes with an SI prefix: 58.21 MB."""
    return numbers.amount(float(value or 0), "B")


@register.filter
def ago(moment: datetime | None) -> str:
    """How long ago, in the largest unit: '4 min ago', 'yesterday', '17 Nov 2026'."""
    if not moment:  # None, or '' where a template found nothing
        return numbers.NOTHING
    passed = (timezone.now() - moment).total_seconds()
    if passed < 60:
        return "just now"
    if passed < 3600:
        return f"{numbers.with_unit(str(int(passed // 60)), 'min')} ago"
    if passed < 20 * 3600:
        return f"{numbers.with_unit(str(int(passed // 3600)), 'h')} ago"
    days = (timezone.localdate() - timezone.localtime(moment).date()).days
    if days < 2:
        return "yesterday" if days == 1 else "today"
    local = timezone.localtime(moment)
    return f"{local.day} {local:%b %Y}"


@register.filter
def moment(value: datetime | None) -> str:
    """A point in time with its zone: '20 Nov 2026, 20:02:17 CET', '20 Nov 2026, 20:02:17 UTC+05:45'."""
    if not value:  # None, or '' where a template found nothing
        return numbers.NOTHING
    local = timezone.localtime(value)
    zone = f"{local:%Z}"
    if not zone.isalpha():  # zones without a name of their own are called by their offset
        zone = f"UTC{local.isoformat()[-6:]}"
    return f"{local.day} {local:%b %Y, %H:%M:%S}\N{NO-BREAK SPACE}{zone}"


@register.filter
def styled(field: BoundField) -> SafeString:
    """The widget of a field of Django's forms with the class of the style sheet, and without an example that repeats its label."""
    classes = {"select": "form-select", "checkbox": "form-check-input"}
    attributes: dict[str, Any] = {"class": classes.get(field.widget_type, "form-control")}
    if str(field.field.widget.attrs.get("placeholder", "")).lower() in str(field.label).lower():
        attributes["placeholder"] = False
    return field.as_widget(attrs=attributes)


@register.filter
def sentences(errors: Iterable[str]) -> SafeString:
    """What is wrong with a field, each on a line of its own."""
    lines = ((text if text.endswith((".", "!", "?")) else f"{text}.",) for text in map(str, errors))
    return format_html_join("", "<span>{}</span>", lines)


@register.simple_tag
def heads(*names: str) -> SafeString:
    """Return the head of a table: a column for each name; `#` before a name aligns it as a number, "" has none."""
    cell = '<th scope="col" class="{}">{}</th>'
    cells = ((cell, "num" if name.startswith("#") else "", name.removeprefix("#")) for name in names)
    columns = [format_html(*column) if column[2] else format_html("<td></td>") for column in cells]
    return format_html("<thead><tr>{}</tr></thead>", format_html_join("", "{}", ((each,) for each in columns)))
