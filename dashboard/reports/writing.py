"""Pages to write reports: create, edit, restore, delete, generate, pin."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from analysis.conclusions.wording import joined, lower_first
from analysis.numbers import plural
from dashboard.reports.compose import report_of
from dashboard.reports.markdown import one_ending, parts_of
from dashboard.reports.parts import Source, offered
from dashboard.reports.rendering import check_text, freeze, pieces_of
from dashboard.reports.views import changed_lines, find_report
from dashboard.requests.idempotency import idempotent_redirect, redirect_or_refuse
from dashboard.requests.lookup import find_experiment, query_value
from experiments.access import may_delete_report, may_write_reports, report_projects, visible_experiments
from experiments.errors import InvalidSpec, ReportChanged
from experiments.models import Experiment, Project, Report
from experiments.models.report import LONGEST_TEXT, LONGEST_TITLE

_MOST_OFFERED = 20
_MOST_NAMED = 3


class ReportForm(forms.Form):
    """A report to save; ``base`` is the version that was edited."""

    title = forms.CharField(max_length=LONGEST_TITLE)
    text = forms.CharField(max_length=LONGEST_TEXT, required=False, strip=False, widget=forms.Textarea)
    note = forms.CharField(
        max_length=LONGEST_TITLE, required=False, label="Summary of changes", help_text="For the list of versions."
    )
    anew = forms.BooleanField(required=False, label="Update the data of frozen parts")
    base = forms.IntegerField(widget=forms.HiddenInput, min_value=1)

    def clean_text(self) -> str:
        return one_ending(self.cleaned_data["text"])


class NewReportForm(ReportForm):
    """A new report in a project of its author."""

    project = forms.ModelChoiceField(Project.objects.none(), to_field_name="slug", empty_label=None)
    note = base = anew = None  # type: ignore[assignment]

    def __init__(self, user: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        project_field: Any = self.fields["project"]
        project_field.queryset = Project.objects.filter(pk__in=[project.pk for project in report_projects(user)])


class PinForm(forms.Form):
    """A part, and the report that gets it or the title of a new one."""

    part = forms.CharField(max_length=LONGEST_TEXT, widget=forms.HiddenInput)
    report = forms.ModelChoiceField(
        Report.objects.none(), required=False, empty_label="New report", widget=forms.Select({"class": "form-select"})
    )
    title = forms.CharField(
        max_length=LONGEST_TITLE,
        required=False,
        label="Title of the new report",
        widget=forms.TextInput({"class": "form-control"}),
    )
    project = forms.ModelChoiceField(
        Project.objects.none(),
        required=False,
        to_field_name="slug",
        empty_label=None,
        label="Project of the new report",
        widget=forms.Select({"class": "form-select"}),
    )

    def __init__(self, user: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user, self._projects = user, report_projects(user)
        projects = [project.pk for project in self._projects]
        fields: dict[str, Any] = self.fields
        fields["report"].queryset = Report.objects.filter(project__in=projects)
        fields["report"].label_from_instance = attrgetter("title")
        fields["project"].queryset = Project.objects.filter(pk__in=projects)

    def clean_part(self) -> str:
        part: str = self.cleaned_data["part"]
        try:
            check_text(part, Source(self._user))
            if len(parts_of(part)) != 1 or "\n" in part.strip():
                raise forms.ValidationError("Choose one part.")
        except InvalidSpec as error:
            raise forms.ValidationError([problem.message for problem in error.errors]) from None
        return part

    def clean(self) -> None:
        if not self.cleaned_data.get("report") and not self.cleaned_data.get("title"):
            self.add_error("title", "Enter a title, or choose a report.")
        self.cleaned_data["project"] = self.cleaned_data.get("project") or self._projects[0]


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Show an empty form; on POST create a report."""
    if not report_projects(request.user):
        raise PermissionDenied
    form = NewReportForm(request.user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        source, text = Source(request.user), form.cleaned_data["text"]
        try:
            check_text(text, source)
        except InvalidSpec as error:
            _at_text(form, error)
        else:
            frozen = freeze(text, source, {})
            data = form.cleaned_data

            def create() -> HttpResponseRedirect:
                return redirect(Report.write(data["project"], data["title"], text, frozen, by=request.user))

            return idempotent_redirect(request, create)
    return _form(request, form)


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a report in its form; on POST save a version or show a conflict."""
    report = _writable(request, pk)
    current = report.current
    if request.method != "POST":
        initial = {"title": current.title, "text": current.text, "base": current.number}
        return _form(request, ReportForm(initial=initial), report)
    form = ReportForm(request.POST)
    if not form.is_valid():
        return _form(request, form, report)
    data, source = form.cleaned_data, Source(request.user)
    try:
        check_text(data["text"], source, current.text)
        frozen = freeze(data["text"], source, current.frozen, anew=data["anew"])
        report.revise(data["title"], data["text"], frozen, by=request.user, base=data["base"], note=data["note"])
    except InvalidSpec as error:
        _at_text(form, error)
        return _form(request, form, report)
    except ReportChanged:
        return _conflict(request, report, data)
    messages.success(request, f"Saved as version {report.version}.", extra_tags="ok")
    return redirect(report)


@require_POST
def preview(request: HttpRequest) -> HttpResponse:
    """Render a text or its errors; store nothing."""
    if not report_projects(request.user):
        raise PermissionDenied
    text = one_ending(request.POST.get("text", ""))
    if len(text) > LONGEST_TEXT:
        context: dict[str, Any] = {"errors": [f"The text is longer than {LONGEST_TEXT} characters."]}
    else:
        try:
            # Without frozen data: the preview shows current parts.
            context = {"pieces": pieces_of(text, Source(request.user), {})}
        except InvalidSpec as error:
            context = {"errors": [_at_line(problem) for problem in error.errors]}
    return render(request, "reports/_preview.html", context)


@require_GET
def parts(request: HttpRequest) -> HttpResponse:
    """List the parts of an experiment, or experiments with a matching name."""
    if not report_projects(request.user):
        raise PermissionDenied
    words = query_value(request, "experiment")
    visible = visible_experiments(request.user).select_related("cluster", "project")
    chosen = visible.filter(slug=words).first() if words else None
    if chosen is not None:
        context: dict[str, Any] = {"chosen": chosen, "offered": offered(Source(request.user), chosen)}
    else:
        context = {"found": visible.filter(name__icontains=words)[:_MOST_OFFERED], "words": words}
    return render(request, "reports/_chooser.html", context)


@require_POST
def restore(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    report = _writable(request, pk)
    earlier = get_object_or_404(report.versions, number=number)
    if number == report.version:
        messages.info(request, f"Version {number} is already the newest.")
        return redirect(report)
    try:
        check_text(earlier.text, Source(request.user), earlier.text)
        report.restore(number, by=request.user)
    except InvalidSpec as error:
        messages.error(request, f"Not restored: {error}", extra_tags="bad")
    except ReportChanged as error:
        messages.error(request, f"{error} Nothing was restored; read that version first.", extra_tags="bad")
    else:
        messages.success(request, f"Version {number} restored as version {report.version}.", extra_tags="ok")
    return redirect(report)


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    report = find_report(request, pk)
    if not may_delete_report(request.user, report):
        raise PermissionDenied
    title = report.title
    report.delete()
    messages.success(request, f"Report “{title}” deleted.", extra_tags="ok")
    return redirect("reports")


@require_POST
def of_experiment(request: HttpRequest, slug: str) -> HttpResponse:
    """Generate the report of an experiment and open its form."""
    experiment = find_experiment(request, slug)
    project = _project(request.user, experiment)

    def create() -> HttpResponseRedirect:
        text = report_of(experiment, Source(request.user))
        check_text(text, Source(request.user))
        note = f"Generated from {experiment.slug}"
        report = Report.write(project, experiment.name[:LONGEST_TITLE], text, {}, by=request.user, note=note)
        return redirect("report-edit", report.pk)

    return redirect_or_refuse(request, create, experiment)


@require_http_methods(["GET", "HEAD", "POST"])
def pin(request: HttpRequest, slug: str = "") -> HttpResponse:
    """Choose or name a report for a part of an experiment or the chart of a page.

    On POST append the part as a new version, or create the report.
    """
    experiment = find_experiment(request, slug) if slug else None
    if not report_projects(request.user):
        raise PermissionDenied
    initial = {"part": f"{{{{ {query_value(request, 'part')} }}}}", "title": query_value(request, "title")}
    form = PinForm(request.user, request.POST or None, initial=initial)
    if experiment is not None:
        lines = [(line, title) for title, line in offered(Source(request.user), experiment)]
        form.fields["part"].widget = forms.Select({"class": "form-select"}, lines)
    if request.method == "POST" and form.is_valid():
        return idempotent_redirect(request, lambda: _pinned(request, **form.cleaned_data))
    try:
        of = "" if experiment else _title_of(request.user, initial["part"])
    except (InvalidSpec, ValueError):
        of = ""
    context = {"place": "reports", "experiment": experiment, "of": of, "form": form}
    return render(request, "reports/pin.html", context, status=400 if form.is_bound else 200)


def _pinned(
    request: HttpRequest, part: str, report: Report | None, title: str, project: Project
) -> HttpResponseRedirect:
    note = f"Pinned {_title_of(request.user, part)}"[:LONGEST_TITLE]
    if report is None:
        return redirect(Report.write(project, title, f"{part}\n", {}, by=request.user, note=note))
    current = report.current
    text = f"{current.text.rstrip()}\n\n{part}\n"
    try:
        check_text(text, Source(request.user), current.text)
        report.revise(current.title, text, current.frozen, by=request.user, base=current.number, note=note)
    except (InvalidSpec, ReportChanged) as error:
        messages.error(request, f"Not pinned: {error}", extra_tags="bad")
    else:
        messages.success(request, "Pinned at the end of the report.", extra_tags="ok")
    return redirect(report)


def _title_of(user: Any, line: str) -> str:
    """Return title and experiments of a part, else its line without braces."""
    (part,) = parts_of(line)
    source = Source(user)
    experiments = source.experiments(part) or ()
    if part.query and experiments:
        try:
            title = source.body(part)["title"]
        except LookupError:
            return part.key
        names = [experiment.name for experiment in experiments]
        return f"{lower_first(title)} of {joined(names) if len(names) <= _MOST_NAMED else plural(len(names), 'experiment')}"
    for experiment in experiments:
        for title, offered_line in offered(source, experiment):
            if offered_line == line:
                return f"{lower_first(title)} of {experiment.name}"
    return part.key


def _writable(request: HttpRequest, pk: int) -> Report:
    report = find_report(request, pk)
    if not may_write_reports(request.user, report.project):
        raise PermissionDenied
    return report


def _project(user: Any, experiment: Experiment) -> Project:
    projects = report_projects(user)
    if not projects:
        raise PermissionDenied
    return next((project for project in projects if project.pk == experiment.project_id), projects[0])


def _at_line(error: Any) -> str:
    return f"Line {error.line}: {error.message}." if error.line else f"The text {error.message}."


def _at_text(form: ReportForm, error: InvalidSpec) -> None:
    for problem in error.errors:
        form.add_error("text", _at_line(problem))


def _form(request: HttpRequest, form: ReportForm, report: Report | None = None, **extra: Any) -> HttpResponse:
    status = 400 if form.is_bound and not form.is_valid() else extra.pop("status", 200)
    address = reverse("report-edit", args=[report.pk]) if report else reverse("report-new")
    context = {"place": "reports", "form": form, "report": report, "address": address, **extra}
    return render(request, "reports/form.html", context, status=status)


def _conflict(request: HttpRequest, report: Report, data: dict[str, Any]) -> HttpResponse:
    current = report.versions.select_related("author").order_by("-number")[0]
    base = report.versions.filter(number=data["base"]).first()
    theirs = list(changed_lines(base.text if base else "", current.text))
    form = ReportForm(initial={**data, "base": current.number})
    return _form(request, form, report, theirs=theirs, current=current, base=data["base"], status=409)
