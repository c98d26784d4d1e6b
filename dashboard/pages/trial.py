"""Page of a trial: state, metrics, traffic, hosts, output and environment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import HttpResponseClientRefresh

from analysis import numbers
from dashboard.labels import (
    command_lines,
    fact_rows,
    own_unit,
    parameter_label,
    parameters_sentence,
    telling,
    trial_role,
    value_words,
)
from dashboard.panels.experiment.excluded_trials import swept_of, why_apart
from dashboard.panels.trial.counters import counters_panel, rate_limits
from dashboard.panels.trial.host_charts import COUNTED_VIEWS, host_views
from dashboard.panels.trial.host_samples import NoSamples, samples_of
from dashboard.panels.trial.inside_mpi import inside_mpi
from dashboard.panels.trial.link_panel import link_panel
from dashboard.panels.trial.live import left_s, live_charts
from dashboard.panels.trial.metric_rows import metric_rows, missing_rows
from dashboard.panels.trial.packets import KINDS, PacketQuery
from dashboard.panels.trial.rank_timeline import rank_timeline
from dashboard.panels.trial.siblings import environment_comparison, observer_of
from dashboard.panels.trial.tiles import metrics_of_tiles, published_here, tile_of
from dashboard.panels.trial.traffic import wire_of
from dashboard.panels.trial.trust_panel import trust_rows
from dashboard.requests import ranges
from dashboard.requests.idempotency import redirect_or_refuse
from dashboard.requests.lookup import find_trial, query_value
from experiments import workloads
from experiments.access import may_cancel, may_run_again, visible_trials
from experiments.errors import NotPlain, StaleTrial, StoreUnavailable, Tampered
from experiments.metrics import still_absent
from experiments.models import METRIC_SOURCES, Artifact, Kind, State, Trial
from experiments.selectors import neighbours, repetitions_of
from experiments.selectors.queue_forecast import length_of
from experiments.specification import design
from experiments.specification.parameters import unit_of
from workers import queue

LIVE_FIELDS = ("state", "message", "progress", "worker", "queued_at", "preparing_at", "cancel_requested_at")
_STATISTICS = {"min": 0, "mean": 1, "median": 2, "max": 3}


@require_GET
def page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one trial."""
    trial = find_trial(request, pk)
    before, after = neighbours(trial)
    artifacts = list(trial.artifacts.all())
    has_packets = any(a.kind == Artifact.Kind.CAPTURE and a.removed_at is None for a in artifacts)
    may_change = not trial.experiment.published and may_cancel(request.user, trial.experiment)
    link = None if trial.experiment.published else design.link_of(trial.configuration.parameters)
    traits = trial.cluster.traits if trial.cluster else None
    describe = link and (partial(traits.link_in_words, link) if traits else link.describe)
    is_current = trial.is_over and not trial.superseded
    context = {
        "place": "experiments",
        "trial": trial,
        "title": _title(trial),
        "point": _point(trial),
        "apart": why_apart(trial.experiment, [trial]).get(trial.pk, ""),
        "link": describe(brief=True) if describe else "",
        "link_in_full": describe() if describe else "",
        "before": before,
        "after": after,
        "may_cancel": may_change and not trial.is_over,
        "may_run_again": is_current and may_change and may_run_again(request.user, trial),
        "artifacts": artifacts,
        "has_packets": has_packets,
        "has_hosts": trial.is_over and any(a.kind == Artifact.Kind.SAMPLES for a in artifacts),
        "packet_query": PacketQuery.of(request),
        "packet_kinds": KINDS,
        "command": command_lines(trial.command) if trial.command else "",
        "certificate": link_panel(trial),
        "inside": inside_mpi(trial, has_packets=has_packets) if trial.is_over else None,
        "host_counters": counters_panel(trial) if trial.is_over else None,
        "parameters": _parameters(trial),
        "output_query": _output_query(request),
        "facts": list(fact_rows(trial.environment.facts if trial.environment else {})),
        "conditions": list(
            fact_rows({name: value for name, value in trial.conditions.items() if name != METRIC_SOURCES})
        ),
        **(environment_comparison(trial) if trial.is_over else {"siblings": []}),
    }
    if trial.state == State.FINISHED:
        context |= _measured(trial, artifacts, has_packets=has_packets)
    elif not trial.is_over:
        context |= {**_running(trial, length_of(trial)), "first": True}
    context["is_measured"] = bool(context.get("analysis") or context["inside"])
    tabs = _tabs(trial, context)
    chosen = query_value(request, "tab")
    context |= {"tabs": tabs, "tab": chosen if chosen in [name for name, _, _ in tabs] else tabs[0][0]}
    return render(request, "trial/page.html", context)


def _tabs(trial: Trial, context: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return (name, title, template) of the parts that this trial has."""
    parts = (
        ("overview", "Overview", True),
        ("time", "Over time", context["is_measured"]),
        ("wire", "Wire", any(context.get(name) for name in ("analysis", "trust_rows", "observer", "certificate"))),
        ("mpi", "MPI", context["inside"]),
        ("counters", "Counters", context["host_counters"]),
        ("packets", "Packets", context["has_packets"]),
        ("measurements", "Measurements", trial.state == State.FINISHED),
        ("output", "Output", True),
        ("files", "Files", trial.is_over and context["artifacts"]),
        ("environment", "Environment", True),
    )
    return [(name, title, f"trial/_{name}.html") for name, title, is_there in parts if is_there]


def _output_query(request: HttpRequest) -> str:
    chosen = {name: query_value(request, name) for name in ("file", "words", "figure", "line")}
    return urlencode({name: value for name, value in chosen.items() if value})


@require_GET
def live(request: HttpRequest, pk: int) -> HttpResponse:
    """Render state and rates of an unfinished trial; reload the page at its end."""
    # Requested every second, perhaps during a measurement: only needed columns.
    trial = get_object_or_404(visible_trials(request.user).only(*LIVE_FIELDS), pk=pk)
    if trial.is_over:
        return HttpResponseClientRefresh()
    return render(request, "trial/_live.html", _running(trial, _seconds(query_value(request, "length_s"))))


def _running(trial: Trial, length_s: float | None) -> dict[str, Any]:
    remaining_s = left_s(trial, length_s)
    return {"trial": trial, "charts": live_charts(trial.progress), "length_s": length_s, "left_s": remaining_s}


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds < math.inf else None


@require_GET
def ranks(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the timeline of ranks, or a section of it."""
    trial = find_trial(request, pk)
    panel = rank_timeline(
        trial, first=query_value(request, "from"), until=query_value(request, "to"), steps=query_value(request, "steps")
    )
    return render(request, "trial/_rank_timeline.html", {"trial": trial, **panel})


@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Cancel one trial."""
    trial = find_trial(request, pk)
    if not may_cancel(request.user, trial.experiment):
        raise PermissionDenied
    words = "Cancelled." if trial.cancel() else "The trial had already ended."
    messages.info(request, words)
    return redirect(trial)


@require_GET
def environment(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the differences of environment to another trial."""
    trial = find_trial(request, pk)
    context = {"trial": trial, **environment_comparison(trial, query_value(request, "against"))}
    return render(request, "trial/_environment_beside.html", context)


@require_POST
def again(request: HttpRequest, pk: int) -> HttpResponse:
    """Queue this trial again; the new attempt supersedes it."""
    trial = find_trial(request, pk)
    if trial.experiment.published or not may_run_again(request.user, trial):
        raise PermissionDenied

    def queued() -> HttpResponseRedirect:
        attempt = queue.run_again(trial)
        messages.success(request, f"Attempt {attempt.attempt} is queued; this is its page.", extra_tags="ok")
        return redirect(attempt)

    words = "This trial has not ended, or a newer attempt has replaced it."
    return redirect_or_refuse(
        request, queued, trial, lambda error: words if isinstance(error, StaleTrial) else str(error)
    )


@require_GET
def download(request: HttpRequest, pk: int, name: str) -> HttpResponseBase:
    """Download one artifact of a trial, only if it is unchanged."""
    artifact = find_trial(request, pk).artifacts.filter(removed_at=None, name=name).first()
    if artifact is None:
        raise Http404(f"no such file: {name}")
    plain = {"content_type": "text/plain; charset=utf-8"}
    try:
        return ranges.artifact(request, artifact, f"trial-{pk}-{artifact.name.replace('/', '-')}")
    except FileNotFoundError:
        raise Http404(f"no such file: {name}") from None
    except StoreUnavailable as error:
        return HttpResponse(str(error), status=HTTPStatus.SERVICE_UNAVAILABLE, **plain)
    except (Tampered, NotPlain) as error:
        return HttpResponse(str(error), status=HTTPStatus.CONFLICT, **plain)


def _point(trial: Trial) -> str:
    """Return the swept values, or those that identify the configuration."""
    parameters = trial.configuration.parameters
    workload = trial.experiment.workload
    swept = parameters_sentence(parameters, swept_of(trial.experiment), workload)
    return swept or parameters_sentence(parameters, telling(parameters), workload)


def _title(trial: Trial) -> str:
    written = trial.experiment.specification
    counts = trial.kind == Kind.MEASURED and not trial.experiment.published and "goal" not in written
    count = written.get("repetitions", 3)
    # Added trials and checks of predictions exceed the repetitions of the specification.
    of = f" of {count}" if counts and trial.repetition <= count else ""
    again = f", attempt {trial.attempt}" if trial.attempt > 1 else ""
    again += ", repeated after a disturbed trial" if Trial.repeats_among([trial]) else ""
    return f"Trial at {_point(trial)}, {trial_role(trial.kind, trial.repetition)}{of}{again}"


def _parameters(trial: Trial) -> list[tuple[str, str]]:
    values, slug = trial.configuration.parameters, trial.experiment.workload
    workload = workloads.find(slug, values)
    fields = {} if workload is None else workload.parameters_type.model_fields
    rows = []
    for name, value in values.items():
        words, unit = value_words(name, value, slug), unit_of(fields[name]) if name in fields else ""
        # Sizes and values of a user's own workload have a unit already: 4 MiB.
        bare = isinstance(value, int | float) and not isinstance(value, bool) and unit != "B"
        bare = bare and not own_unit(name, slug)
        rows.append((parameter_label(name, slug), numbers.with_unit(words, unit) if bare else words))
    return rows


def _measured(trial: Trial, artifacts: Sequence[Artifact], *, has_packets: bool) -> dict[str, Any]:
    values = dict(trial.measurements.filter(scope="all").values_list("metric", "value"))
    published = published_here(trial)
    metrics = metrics_of_tiles(trial, values)
    repetitions = repetitions_of(trial, metrics)
    tiles = [tile_of(trial, metric, values, repetitions[metric], published.get(metric)) for metric in metrics]
    wire, observer = wire_of(trial, values, has_packets=has_packets), observer_of(trial)
    has_output = any(a.kind == Artifact.Kind.STDOUT and a.removed_at is None for a in artifacts)
    return {
        "tiles": tiles,
        "dots_shown": any(tile.dots for tile in tiles),
        "published_shown": any(tile.dots and tile.dots.published is not None for tile in tiles),
        "published_name": published.get("name", ""),
        "metric_rows": metric_rows(values, trial.experiment.workload if has_output else ""),
        "output_checks": _output_checks(trial) if has_output else (),
        "printed": _printed_tables(trial.tables),
        "missing": missing_rows(still_absent(trial.not_available, values)),
        "observer": observer,
        "trust_rows": trust_rows(trial, values, wire["counters"], observer),
        **wire,
    }


def _output_checks(trial: Trial) -> tuple[str, ...]:
    workload = workloads.find(trial.experiment.workload, trial.experiment.specification.get("parameters"))
    return workload.output_checks if workload else ()


def _printed_tables(tables: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the workload's tables with texts before numbers."""
    printed = []
    for name, rows in tables.items():
        if not rows:
            continue
        keys = sorted(
            rows[0], key=lambda key: (not isinstance(rows[0][key], str), _STATISTICS.get(key.partition("_")[0], 9))
        )
        printed.append({"name": name, "keys": keys, "rows": [[row.get(key) for key in keys] for row in rows]})
    return printed


@require_GET
def hosts(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the samples of a trial's hosts, which are slow to read."""
    trial, is_counters = find_trial(request, pk), query_value(request, "of") == "counters"
    panel = "counters" if is_counters else "hosts"
    context: dict[str, Any] = {"panel": panel, "title": f"{panel.capitalize()} over time", "element": f"{panel}-1"}
    try:
        samples = samples_of(trial)
    except NoSamples as none:
        context["why"] = str(none)
    else:
        views = (
            host_views(samples, trial, COUNTED_VIEWS, rate_limits(trial)) if is_counters else host_views(samples, trial)
        )
        context |= {"views": views, "samples": samples, "hosts": len(samples.hosts) + samples.omitted}
        if not views:
            context["why"] = "No device counter was sampled twice."
    return render(request, "trial/_hosts.html", context)
