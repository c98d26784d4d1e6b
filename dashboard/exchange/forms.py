"""Forms of exported bundles and of imports."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.conf import settings

from analysis.numbers import plural
from experiments.exchange.exporting import ADDRESSES_IN_CONTENTS
from experiments.models import Project

CAPTURES: Final = (
    ("all", "complete"),
    ("headers", "packet headers only"),
    ("none", "no captures"),
)


class BundleForm(forms.Form):
    captures = forms.ChoiceField(
        label="Captures",
        choices=CAPTURES,
        initial="all",
        help_text="Headers are enough for all metrics: times, sizes, connections, ranks.",
    )
    anonymise = forms.BooleanField(
        label="Replace addresses",
        required=False,
        help_text="Replaces IP and MAC addresses in captures and texts, consistently in all files. Names of hosts and users stay. "
        "Needs captures with packet headers only, or none.",
    )
    licence = forms.CharField(
        label="Licence",
        max_length=300,
        required=False,
        help_text="Terms of use for others: a name or a URL.",
    )

    def clean(self) -> dict[str, Any]:
        """Refuse `anonymise` with complete packets, whose contents have addresses."""
        cleaned: dict[str, Any] = super().clean() or {}
        if cleaned.get("anonymise") and cleaned.get("captures") == "all":
            self.add_error("anonymise", ADDRESSES_IN_CONTENTS)
        return cleaned


class ImportForm(forms.Form):
    file = forms.FileField(
        label="File",
        help_text="A bundle of another Rankwire (.zip); a description of other measurements (.yaml), or a zip archive with it and its "
        "files or table (.csv) at the top level; a report of ReFrame, Ramble, Benchpark or TALP (.json).",
    )
    project = forms.ChoiceField(label="Project", help_text="Its members see the imported results.")

    def __init__(self, projects: list[Project], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["project"].choices = [(project.slug, project.name) for project in projects]  # type: ignore[attr-defined]
        limit = plural(settings.IMPORT_LIMIT_BYTES >> 20, "MiB", "MiB")
        self.fields["file"].help_text += f" At most {limit}; import larger files with script/manage import."
