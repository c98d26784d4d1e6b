"""What is said of a bundle that is made, and of one that comes."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.conf import settings

from analysis.numbers import plural
from experiments.exchange.exporting import IN_CONTENTS
from experiments.models import Project

CAPTURES: Final = (
    ("all", "as they were kept"),
    ("headers", "cut to the headers of their packets"),
    ("none", "leave them out"),
)


class BundleForm(forms.Form):
    """How a bundle is to be made."""

    captures = forms.ChoiceField(
        label="Captures",
        choices=CAPTURES,
        initial="all",
        help_text="Headers tell all that is measured here: times, sizes, connections, ranks.",
    )
    anonymise = forms.BooleanField(
        label="Replace addresses",
        required=False,
        help_text="IP and MAC addresses in captures and texts by others, alike in all files, neighbours staying neighbours. Names of hosts "
        "and people stay. Needs captures cut to their headers, or left out.",
    )
    licence = forms.CharField(
        label="Licence",
        max_length=300,
        required=False,
        help_text="Under which others may use the results: a name or an address. Without one, the bundle says so.",
    )

    def clean(self) -> dict[str, Any]:
        """Refuse addresses that would stand in the contents of packets."""
        asked: dict[str, Any] = super().clean() or {}
        if asked.get("anonymise") and asked.get("captures") == "all":
            self.add_error("anonymise", IN_CONTENTS)
        return asked


class ImportForm(forms.Form):
    """What comes in, and where it goes."""

    file = forms.FileField(
        label="File",
        help_text="A bundle of another Rankwire (.zip); a description of other measurements (.yaml), or a zip archive with it and the "
        "files or the table (.csv) that belong to it at the top; a report of ReFrame, results of Ramble or Benchpark, or a summary of "
        "TALP (.json).",
    )
    project = forms.ChoiceField(label="Project", help_text="Its members see what comes in.")

    def __init__(self, projects: list[Project], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["project"].choices = [(project.slug, project.name) for project in projects]  # type: ignore[attr-defined]
        most = plural(settings.IMPORT_LIMIT_BYTES >> 20, "MiB", "MiB")
        self.fields["file"].help_text += f" {most} at most; larger ones come in by script/manage import."
