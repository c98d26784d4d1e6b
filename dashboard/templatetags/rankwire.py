"""Template tags and filters: icons, chips, numbers and durations."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from django import template
from django.forms import BaseForm, BoundField
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from analysis import numbers
from analysis.catalogue import METRICS
from analysis.conclusions import Answer
from dashboard.charts.parts import bars_note
from dashboard.help.terms import check_term, leading_label, term
from dashboard.labels import first_clause
from dashboard.panels.server.services import load
from dashboard.requests.idempotency import FIELD
from dashboard.states import STRENGTH, chip_of
from experiments.access import visible_deleted
from experiments.files import COUNTERS_NAME, MEASURED_NAME, MPI_CALLS_NAME, MPI_PROFILE_NAME
from experiments.metrics import is_metric
from experiments.models import Artifact, Deleted, Experiment, LastSeen
from experiments.selectors.experiments import seconds_per_trial
from experiments.specification.parameters import CLUSTER_PARAMETERS, LAUNCH_PARAMETERS, LINK_PARAMETERS
from experiments.workloads import program_versions

register = template.Library()
_IDLE: Final = 0.25
"""Load of each core of a machine that is idle enough to repeat trials."""
_FILE_KINDS: Final[Mapping[str, str]] = {
    COUNTERS_NAME: "Hardware counters",
    MEASURED_NAME: "Measurements",
    MPI_CALLS_NAME: "MPI calls",
    MPI_PROFILE_NAME: "MPI profile",
    "ranks.json": "Resources of the ranks",
}
"""Name of a file of no other kind -> its kind in words."""


@register.simple_tag
def icon(name: str) -> SafeString:
    """Return an icon of static/icons.svg, hidden from assistive technology."""
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#{}"/></svg>', static("icons.svg"), name)


@register.simple_tag(takes_context=True)
def has_domain(context: Mapping[str, Any]) -> bool:
    """Return whether the page's address has a name: passkeys belong to a domain."""
    try:
        ip_address(urlsplit(context["request"].build_absolute_uri("/")).hostname or "")
    except ValueError:
        return True
    return False


@register.filter
def repeat_outlook(experiment: Experiment, count: int) -> str:
    """Return the time that repeats take, and this machine's load if it runs them."""
    seconds = seconds_per_trial(experiment)
    words = f"They take about {numbers.duration(count * seconds)}." if seconds else ""
    if experiment.cluster is None or not experiment.cluster.traits.on_this_machine:
        return words
    now = load()
    again = (
        ": other load would disturb them again. Wait until it is near 0" if now["busy"] > _IDLE * now["cores"] else ""
    )
    return f"{words} Load of this machine now: {now['busy']} on {numbers.plural(now['cores'], 'core')}{again}."


@register.simple_tag
def once() -> SafeString:
    """Return the form field that identifies duplicate submissions."""
    return format_html('<input type="hidden" name="{}" value="{}">', FIELD, secrets.token_urlsafe(16))


def _explained(context: Mapping[str, Any], classes: str, inside: str, meaning: str, address: str = "") -> SafeString:
    """Return words with their meaning on hover and focus; visitors get no link."""
    meaning = numbers.unbroken(meaning)
    if not address or getattr(context.get("user"), "is_visitor", False):
        return format_html('<span class="{}" tabindex="0" data-explains="{}">{}</span>', classes, meaning, inside)
    return format_html('<a class="{}" href="{}" data-explains="{}">{}</a>', classes, address, meaning, inside)


@register.simple_tag(takes_context=True)
def explain(context: Mapping[str, Any], words: str, name: str = "", meaning: str = "") -> SafeString:
    """Return words with their definition on hover and focus, and a link.

    ``name`` is the id of a metric or of a row of docs/reference/terms.md; without one the words are looked up. Undefined
    words show the given ``meaning``, or those of a metric at their begin ("Elapsed time over hosts"), or of the terms in them.
    """
    section = term(name or words)
    if section is not None:
        return _explained(context, "term", words, section.meaning, section.address)
    if meaning:
        return _explained(context, "term", words, meaning)
    if not context.get("file") and (label := leading_label(words)):
        return format_html("{}{}", explain(context, label), words.removeprefix(label))
    return explain_terms(context, words)


IN_SENTENCES: Final = {
    "without-drift": r"without drift|with drift",
    "confidence-interval": r"[\d.]+\s% (?:CI|confidence interval)",
    "without-waiting-for-core": r"excluding waits for descheduled ranks",
    "difference-of-medians": r"difference of medians",
    "waiting-for-core": r"waiting for a CPU core(?: to compute)?",
    "descheduled": r"descheduled",
    "ideal-time": r"(?<=than )ideal|(?<=against the )ideal|(?<=above the )ideal|ideal(?= from \d)",
    "efficiency-limit": r"(?:above|below) 80\s%|above or below 80\s%",
    "off-cpu": r"off the CPU",
    "interarrival_mean_s": r"mean inter-arrival time",
    "interarrival_cv": r"inter-arrival CV",
    "poisson": r"Poisson stream",
    "autocorrelation": r"autocorrelation",
    "geometric-mean": r"geometric means?",
    "welch": r"Welch's t test(?: on logarithms)?",
    "permutation": r"permutation test(?: of ranks)?",
    "benjamini-hochberg": r"Benjamini\W+Hochberg",
    "workers-user": r"\bworker's (?:user|machine)\b",
    "check.offloads": r"\boffloads\b",
    "check.path-mtu": r"\bpath MTU\b",
    "link.mtu": r"\bMTU\b",
    "jump-host": r"\bjump host\b",
    "task-plugin": r"\bTaskPlugin\b",
    "pmi": r"\bPMI(?:x|-?2)\b",
    "pals": r"\bPALS\b",
    "netem": r"\bnetem\b",
    "verbs-device": r"\b(?:InfiniBand or RoCE|EFA or verbs|Omni-Path|Slingshot) \(\w+\)",
    "shared-memory": r"shared memory \([\w ]+\)",
    "open-mpi-layer": r"Open MPI's \w+",
    "network-builder": r"\bbridge(?: \+ [\w() ]+)*|\btbf\b",
    "idle-machine": r"\bidle machines?\b",
    "mpi-window": r"\bMPI window\b",
    "tip4p": r"\bTIP4P\b",
    "operations-per-cycle": r"operations per cycle",
}
"""Id of a metric or of docs/reference/terms.md -> the words of sentences that it defines."""
_PHRASES: Final = re.compile("|".join(f"({words})" for words in IN_SENTENCES.values()), re.IGNORECASE)
_TERMS: Final = tuple(IN_SENTENCES)


@register.simple_tag(takes_context=True)
def explain_checks(context: Mapping[str, Any], names: str) -> SafeString:
    """Return the steps of a check ("Link, Clocks"), each with its definition."""
    return format_html_join(", ", "{}", ((explain(context, name, check_term(name)),) for name in names.split(", ")))


@register.simple_tag(takes_context=True)
def explain_terms(context: Mapping[str, Any], sentence: str) -> SafeString:
    """Return a sentence with definitions of its terms at their first use.

    In the file of a report, which has no other pages, the sentence alone.
    """
    sentence = numbers.unbroken(str(sentence))
    if context.get("file"):
        return format_html("{}", sentence)
    first = {
        _TERMS[match.lastindex - 1]: match for match in reversed([*_PHRASES.finditer(sentence)]) if match.lastindex
    }
    pieces, end = [], 0
    for name, match in sorted(first.items(), key=lambda item: item[1].start()):
        pieces += [sentence[end : match.start()], explain(context, match[0], name)]
        end = match.end()
    return format_html_join("", "{}", ((piece,) for piece in [*pieces, sentence[end:] if end else sentence]))


_PARAMETERS: Final = frozenset((*CLUSTER_PARAMETERS, *LAUNCH_PARAMETERS, *LINK_PARAMETERS))
_PROCESSES: Final = {
    "worker": "No worker",
    "beat": "No process for periodic tasks (beat)",
    "background": "No background worker",
}


@register.inclusion_tag("parts/_missing.html")
def missing(*roles: str) -> dict[str, Any]:
    """Warn of missing processes on a page that waits for them."""
    seen = LastSeen.of_roles()
    rows = [
        {"role": role, "name": _PROCESSES[role], "age_s": seen[role].age_s} for role in roles if not seen[role].is_alive
    ]
    return {"missing": rows}


@register.filter
def meaning(words: str) -> str:
    """Return the meaning of a metric or of a term; '' for any other word."""
    section = term(words)
    return section.meaning if section else ""


@register.filter
def metric_meaning(name: str) -> str:
    """Return the definition of a metric by its id; '' for any other word."""
    return meaning(name) if name in METRICS or ("." in str(name) and is_metric(name)) else ""


@register.filter
def parameter_meaning(name: str) -> str:
    """Return the meaning of a parameter of the launch or the link by its path."""
    return meaning(name) if name in _PARAMETERS else ""


register.filter("check_term", check_term)


@register.filter
def label_meaning(field: Any) -> str:
    """Return the meaning of a form field's label, by its path or its words."""
    return next(filter(None, (meaning(str(name)) for name in (field.path, field.label))), "")


@register.simple_tag(takes_context=True)
def chip(
    context: Mapping[str, Any], state: str, words: str = "", bare: bool = False, explained: bool = False
) -> SafeString:
    """Return a state as icon, word and colour, with its meaning on hover.

    If ``explained``, also on focus and with a link.
    """
    display = chip_of(state)
    section = term(f"state.{state.lower()}") or term(f"trust.{state.lower()}") or term(state.lower())
    classes = f"chip {display.tone}{' bare' if bare else ''}"
    inside = format_html("{}{}", icon(display.icon), words or display.word)
    if section is None:
        return format_html('<span class="{}">{}</span>', classes, inside)
    if explained:
        return _explained(context, classes, inside, section.meaning, section.address)
    return format_html('<span class="{}" data-explains="{}">{}</span>', classes, section.meaning, inside)


@register.simple_tag
def strength(answer: Answer) -> SafeString:
    """Return the strength of an answer as a word and a colour, for lists."""
    return format_html('<span class="chip bare {}">{}</span>', *STRENGTH[answer.strength])


@register.simple_tag
def square(state: str) -> SafeString:
    """Return one trial in a strip without a link."""
    display = chip_of(state)
    return format_html('<i class="{}">{}</i>', display.tone, "" if display.tone == "ok" else display.glyph)


@register.simple_tag
def trial_square(mark: dict[str, str], point: str) -> SafeString:
    """Return one trial in a strip as a link with an accessible name."""
    display = chip_of(mark["state"])
    name = f"{point}, {mark['name']}: {display.word.lower()}" + (f" ({mark['message']})" if mark["message"] else "")
    return format_html(
        '<a class="{}{}" href="{}" title="{}" aria-label="{}">{}</a>',
        display.tone,
        " warm" if mark["kind"] == "warmup" else "",
        reverse("trial", args=[mark["pk"]]),
        name,
        name,
        display.glyph,
    )


_FOREIGN_TAG = re.compile(r"<(?!/?extra>)")


register.filter("bars_note", bars_note)


@register.filter
def figure(value: dict[str, Any]) -> SafeString:
    """Return a figure as JSON that is safe inside a script element.

    Plotly interprets tags in any text as markup, including links: only those of our charts remain.
    """
    text = _FOREIGN_TAG.sub("&lt;", json.dumps(value, separators=(",", ":"), allow_nan=False))
    for character, escaped in (("<", "\\u003C"), (">", "\\u003E"), ("&", "\\u0026")):
        text = text.replace(character, escaped)
    return mark_safe(text)  # noqa: S308 (JSON with the three characters of HTML escaped)


@register.simple_tag(takes_context=True)
def trashed(context: Mapping[str, Any]) -> Deleted | None:
    """Return the deleted experiment of the requested page, if the user may restore it."""
    request: Any = context.get("request")
    match = getattr(request, "resolver_match", None)
    if match is None or not request.user.is_authenticated or getattr(request.user, "is_visitor", False):
        return None
    is_trial, slug, pk = match.url_name == "trial", match.kwargs.get("slug"), match.kwargs.get("pk")
    if not (is_trial or str(match.url_name).startswith("experiment")):
        return None
    return next(
        (row for row in visible_deleted(request.user) if row.slug == slug or (is_trial and pk in row.trials)), None
    )


@register.filter
def file_kind(artifact: Artifact) -> str:
    """Return the kind of a file of a trial in words."""
    return _FILE_KINDS.get(artifact.name) or artifact.get_kind_display()


@register.filter
def plain(identifier: str) -> str:
    """Return an identifier as words: 'dropped_by_kernel' -> 'Dropped by kernel'."""
    return str(identifier).replace("_", " ").capitalize()


@register.filter
def cell(value: Any) -> str:
    """Return a value of any type for a table: four digits, or a dash for none."""
    if value is None:
        return numbers.NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    return numbers.significant(value)


@register.filter
def written(value: Any) -> str:
    """Return a value of a specification: lists with commas, 'not set' for none."""
    if value is None:
        return "not set"
    if isinstance(value, list):
        return ", ".join(written(item) for item in value) or "none"
    return "yes" if value is True else "no" if value is False else str(value)


@register.simple_tag
def amount(value: Any, unit: str = "") -> SafeString:
    """Return a number with its unit set apart; a dash for None or ''."""
    number, shown_unit = numbers.quantity(None if value == "" else value, unit)
    if not shown_unit:
        return format_html("{}", number)
    return format_html('{}<span class="u">{}</span>', number, shown_unit)


@register.simple_tag
def copyable(value: Any, unit: str = "") -> SafeString:
    """Return a number with its unit; a click or Enter copies it with all its digits.

    The value is a number, an ``Amount``, or words, which are returned as they are. The values of a table or of the tiles are one stop of
    the Tab key (static/roving.js).
    """
    is_words = isinstance(value, str)
    exact = getattr(value, "exact", "") if is_words else numbers.exact(value, unit)
    content = format_html("{}", value) if is_words else amount(value, unit)
    if not exact:
        return content
    return format_html(
        '<data class="copyable" role="button" tabindex="-1" value="{}" title="Copy {}">{}</data>', exact, exact, content
    )


register.filter("first_clause", first_clause)
register.filter("unbroken", numbers.unbroken)


@register.filter
def grouped(value: Any) -> str:
    """Return a whole number with grouped thousands."""
    return numbers.NOTHING if value in (None, "") else numbers.grouped(int(value))


@register.filter
def span(seconds: Any) -> str:
    """Return seconds as a duration for people."""
    return numbers.duration(None if seconds in (None, "") else float(seconds))


@register.filter
def filesize(value: Any) -> str:
    """Return bytes with an SI prefix: 58.21 MB."""
    return numbers.amount(round(float(value or 0)), "B")


@register.filter
def ago(moment: datetime | None) -> str:
    """Return an age in the largest unit: '4 min ago', '17 Nov 2026'."""
    if not moment:  # None, or '' from a missing template variable
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
def versions(experiment: Experiment) -> str:
    """Return "program version 3, revision 2"; other workloads have no version."""
    parameters = experiment.specification.get("parameters") or {}
    program = program_versions(experiment.workload, parameters)
    of_program = f"program version {program['chosen']}, " if program else ""
    return f"{of_program}revision {experiment.version}"


@register.filter
def moment(value: datetime | None) -> str:
    """Return a point in time with its zone.

    '20 Nov 2026, 20:02:17 CET', '20 Nov 2026, 20:02:17 UTC+05:45'.
    """
    if not value:  # None, or '' from a missing template variable
        return numbers.NOTHING
    local = timezone.localtime(value)
    zone = f"{local:%Z}"
    if not zone.isalpha():  # zones without a name use their offset
        zone = f"UTC{local.isoformat()[-6:]}"
    return f"{local.day} {local:%b %Y, %H:%M:%S}\N{NO-BREAK SPACE}{zone}"


@register.filter
def styled(field: BoundField) -> SafeString:
    """Return the widget of a Django form field with the class of the style sheet."""
    classes = {"select": "form-select", "checkbox": "form-check-input"}
    attributes: dict[str, Any] = {"class": classes.get(field.widget_type, "form-control")}
    if str(field.field.widget.attrs.get("placeholder", "")).lower() in str(field.label).lower():
        attributes["placeholder"] = False
    return field.as_widget(attrs=attributes)


@register.simple_tag(takes_context=True)
def not_saved(context: Mapping[str, Any]) -> SafeString:
    """Return a summary of the page's refused forms, with a link to each wrong field."""
    values = context.flatten() if hasattr(context, "flatten") else context
    if values["request"].method != "POST" or not values["user"].is_authenticated:
        return SafeString("")
    bound = [form for form in values.values() if isinstance(form, BaseForm) and form.is_bound]
    wrong = {field.auto_id: field.label for form in bound for field in form if field.errors}
    wrong |= {field.element: field.label for field in values.get("refused_fields", ())}
    links = format_html_join(", ", '<a href="#{}">{}</a>', wrong.items())
    summary = '<p class="note bad mb-3" role="alert" data-refused>Not saved. Correct: {}.</p>'
    return format_html(summary, links) if wrong else SafeString("")


@register.filter
def sentences(errors: Iterable[str]) -> SafeString:
    """Return the errors of a field, one per line."""
    lines = ((text if text.endswith((".", "!", "?")) else f"{text}.",) for text in map(str, errors))
    return format_html_join("", "<span>{}</span>", lines)


@register.simple_tag(takes_context=True)
def heads(context: Mapping[str, Any], *names: str) -> SafeString:
    """Return a table head with a column for each name.

    `#` before a name aligns it as a number, `?` shows its definition, "" has none.
    """
    cell = '<th scope="col" class="{}">{}</th>'
    marks = [(name.removeprefix("#").removeprefix("?"), name[: name.index(name.lstrip("#?"))]) for name in names]
    cells = (
        (cell, "num" if "#" in mark else "", explain(context, words) if "?" in mark else words) for words, mark in marks
    )
    columns = [format_html(*column) if column[2] else SafeString("<td></td>") for column in cells]
    return format_html("<thead><tr>{}</tr></thead>", format_html_join("", "{}", ((column,) for column in columns)))
