"""Reports to write: new, edited, restored, deleted; of an experiment in one click, and its parts pinned."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from dashboard.reports.compose import report_of
from dashboard.reports.markdown import one_ending
from dashboard.reports.parts import Source, offered
from dashboard.reports.rendering import checked, freeze, shown
from dashboard.reports.views import changed_lines, find_report
from dashboard.requests.idempotency import idempotent_redirect
from dashboard.requests.lookup import asked, find_experiment
from experiments.access import may_delete_report, may_write_reports, report_projects, visible_experiments
from experiments.errors import InvalidSpec, ReportChanged
from experiments.models import Experiment, Project, Report
from experiments.models.report import LONGEST_TEXT, LONGEST_TITLE

_MOST_OFFERED = 20


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


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """An empty report; on POST it is made."""
    if not report_projects(request.user):
        raise PermissionDenied
    form = NewReportForm(request.user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        source, text = Source(request.user), form.cleaned_data["text"]
        try:
            checked(text, source)
        except InvalidSpec as error:
            _at_text(form, error)
        else:
            frozen = freeze(text, source, {})
            made = form.cleaned_data

            def written() -> HttpResponseRedirect:
                return redirect(Report.write(made["project"], made["title"], text, frozen, by=request.user))

            return idempotent_redirect(request, written)
    return _form(request, form)


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """A report in its form; on POST a new version of it, unless somebody else saved one meanwhile: then both are shown."""
    report = _writable(request, pk)
    current = report.current
    if request.method != "POST":
        given = {"title": current.title, "text": current.text, "base": current.number}
        return _form(request, ReportForm(initial=given), report)
    form = ReportForm(request.POST)
    if not form.is_valid():
        return _form(request, form, report)
    wanted, source = form.cleaned_data, Source(request.user)
    try:
        checked(wanted["text"], source, current.text)
        frozen = freeze(wanted["text"], source, current.frozen, anew=wanted["anew"])
        report.revise(
            wanted["title"], wanted["text"], frozen, by=request.user, base=wanted["base"], note=wanted["note"]
        )
    except InvalidSpec as error:
        _at_text(form, error)
        return _form(request, form, report)
    except ReportChanged:
        return _conflict(request, report, wanted)
    messages.success(request, f"Saved as version {report.version}.", extra_tags="ok")
    return redirect(report)


@require_POST
def preview(request: HttpRequest) -> HttpResponse:
    """The text as it would be read, or what is wrong in it; nothing is stored."""
    if not report_projects(request.user):
        raise PermissionDenied
    text = one_ending(request.POST.get("text", ""))
    if len(text) > LONGEST_TEXT:
        context: dict[str, Any] = {"errors": [f"The text is longer than {LONGEST_TEXT} characters."]}
    else:
        try:
            # What was frozen is not sent along: the preview shows every part as it is now.
            context = {"pieces": shown(text, Source(request.user), {})}
        except InvalidSpec as error:
            context = {"errors": [_at_line(each) for each in error.errors]}
    return render(request, "reports/_preview.html", context)


@require_GET
def parts(request: HttpRequest) -> HttpResponse:
    """What can be inserted of the experiment that is asked for; experiments of that name where it is none yet."""
    if not report_projects(request.user):
        raise PermissionDenied
    words = asked(request, "experiment")
    visible = visible_experiments(request.user).select_related("cluster", "project")
    chosen = visible.filter(slug=words).first() if words else None
    if chosen is not None:
        context: dict[str, Any] = {"chosen": chosen, "offered": offered(Source(request.user), chosen)}
    else:
        context = {"found": visible.filter(name__icontains=words)[:_MOST_OFFERED], "words": words}
    return render(request, "reports/_chooser.html", context)


@require_POST
def restore(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """Make an earlier version the newest."""
    report = _writable(request, pk)
    if not report.versions.filter(number=number).exists():
        raise Http404
    if number == report.version:
        messages.info(request, f"Version {number} is the newest already.")
        return redirect(report)
    try:
        report.restore(number, by=request.user)
    except ReportChanged as error:
        messages.error(request, f"{error} Nothing was restored: look at it first.", extra_tags="bad")
    else:
        messages.success(request, f"Version {number} is back, as version {report.version}.", extra_tags="ok")
    return redirect(report)


@require_POST
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a report with all its versions and share links."""
    report = find_report(request, pk)
    if not may_delete_report(request.user, report):
        raise PermissionDenied
    title = report.title
    report.delete()
    messages.success(request, f"The report “{title}” is deleted.", extra_tags="ok")
    return redirect("reports")


@require_POST
def of_experiment(request: HttpRequest, slug: str) -> HttpResponse:
    """Make the report of one experiment, and open it to be edited."""
    experiment = find_experiment(request, slug)
    project = _project(request.user, experiment)

    def written() -> HttpResponseRedirect:
        text = report_of(experiment, Source(request.user))
        note = f"Made from {experiment.slug}"
        report = Report.write(project, experiment.name[:LONGEST_TITLE], text, {}, by=request.user, note=note)
        return redirect("report-edit", report.pk)

    return idempotent_redirect(request, written)


@require_http_methods(["GET", "HEAD", "POST"])
def pin(request: HttpRequest, slug: str) -> HttpResponse:
    """Choose a part of an experiment and a report; on POST the part stands at the end of the report, as a new version."""
    experiment = find_experiment(request, slug)
    projects = report_projects(request.user)
    if not projects:
        raise PermissionDenied
    parts = offered(Source(request.user), experiment)
    reports = Report.objects.filter(project__in=projects)[:100]
    error = ""
    if request.method == "POST":
        part, number = request.POST.get("part", ""), request.POST.get("report", "")
        chosen = next((each for each in reports if str(each.pk) == number), None)
        if part not in [line for _, line in parts]:
            error = "Choose one of the parts."
        elif chosen is None:
            error = "Choose one of your reports."
        else:
            return _pinned(request, chosen, part)
    context = {"place": "reports", "experiment": experiment, "offered": parts, "reports": reports, "error": error}
    return render(request, "reports/pin.html", context, status=400 if error else 200)


def _pinned(request: HttpRequest, report: Report, part: str) -> HttpResponse:
    current = report.current
    text = f"{current.text.rstrip()}\n\n{part}\n"
    note = f"Pinned {part.strip('{} ')}"[:LONGEST_TITLE]
    try:
        checked(text, Source(request.user), current.text)
        report.revise(current.title, text, current.frozen, by=request.user, base=current.number, note=note)
    except (InvalidSpec, ReportChanged) as error:
        messages.error(request, f"It was not pinned: {error}", extra_tags="bad")
    else:
        messages.success(request, "Pinned at the end of the report.", extra_tags="ok")
    return redirect(report)


def _writable(request: HttpRequest, pk: int) -> Report:
    report = find_report(request, pk)
    if not may_write_reports(request.user, report.project):
        raise PermissionDenied
    return report


def _project(user: Any, experiment: Experiment) -> Project:
    projects = report_projects(user)
    if not projects:
        raise PermissionDenied
    return next((each for each in projects if each.pk == experiment.project_id), projects[0])


def _at_line(error: Any) -> str:
    return f"Line {error.line}: {error.message}." if error.line else f"The text {error.message}."


def _at_text(form: ReportForm, error: InvalidSpec) -> None:
    for each in error.errors:
        form.add_error("text", _at_line(each))


def _form(request: HttpRequest, form: ReportForm, report: Report | None = None, **more: Any) -> HttpResponse:
    status = 400 if form.is_bound and not form.is_valid() else more.pop("status", 200)
    address = reverse("report-edit", args=[report.pk]) if report else reverse("report-new")
    context = {"place": "reports", "form": form, "report": report, "address": address, **more}
    return render(request, "reports/form.html", context, status=status)


def _conflict(request: HttpRequest, report: Report, wanted: dict[str, Any]) -> HttpResponse:
    current = report.versions.select_related("author").order_by("-number")[0]
    base = report.versions.filter(number=wanted["base"]).first()
    theirs = list(changed_lines(base.text if base else "", current.text))
    form = ReportForm(initial={**wanted, "base": current.number})
    return _form(request, form, report, theirs=theirs, current=current, base=wanted["base"], status=409)
