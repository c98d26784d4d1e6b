"""The forms of reports."""

from __future__ import annotations

from typing import Any

from django import forms

from experiments.access import report_projects
from experiments.models import Project
from experiments.models.report import LONGEST_TEXT, LONGEST_TITLE


class ReportForm(forms.Form):
    """A report as it is to be saved. ``base`` is the version that it was written from."""

    title = forms.CharField(max_length=LONGEST_TITLE)
    text = forms.CharField(max_length=LONGEST_TEXT, required=False, strip=False, widget=forms.Textarea)
    note = forms.CharField(
        max_length=LONGEST_TITLE, required=False, label="What was changed", help_text="For the list of versions."
    )
    anew = forms.BooleanField(required=False, label="Take the data of frozen parts anew")
    base = forms.IntegerField(widget=forms.HiddenInput, min_value=1)

    def clean_text(self) -> str:
        return one_ending(self.cleaned_data["text"])


class NewReportForm(ReportForm):
    """A report that is to be made, in one of the projects that its author may write in."""

    project = forms.ModelChoiceField(Project.objects.none(), to_field_name="slug", empty_label=None)
    note = base = anew = None  # type: ignore[assignment]

    def __init__(self, user: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        mine: Any = self.fields["project"]
        mine.queryset = Project.objects.filter(pk__in=[project.pk for project in report_projects(user)])


def one_ending(text: str) -> str:
    """Text with the line ends of Unix, whatever a browser sent."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
