"""One trial: its state and live rate while it runs, then its six headline metrics, its wire, its output, its surroundings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import HttpResponseClientRefresh

from dashboard import numbers
from dashboard.charts import (
    Dots,
    dot_strip,
    interarrival_ccdf,
    packet_sizes,
    size_classes,
    throughput_over_time,
    traffic_matrix,
)
from dashboard.experiment.not_counted import swept_of, why_apart
from dashboard.experiment.results import published_name
from dashboard.experiment.tables import metric_rows
from dashboard.labels import command_lines, flat, parameter_label, parameters_sentence, trial_role, value_words
from dashboard.lookup import asked, find_trial
from dashboard.trial.link_panel import link_panel
from dashboard.trial.siblings import environment_beside, observer_of
from dashboard.trial.trust_panel import trust_rows
from experiments.access import may_cancel, visible_trials
from experiments.errors import StaleTrial
from experiments.files import read_analysis
from experiments.metrics import HEADLINE, find
from experiments.models import Artifact, Kind, Measurement, State, Trial
from experiments.selectors import neighbours, published_like, repetitions_of
from experiments.spec import design
from workers import queue

# Longer outputs are shown by their end, where a failure says why; the whole is a download.
SHOWN_BYTES = 200_000
MOST_FLOWS = 10
LIVE_FIELDS = ("state", "progress", "worker", "queued_at", "cancel_requested_at")
_STATISTICS = {"min": 0, "mean": 1, "median": 2, "max": 3}


@require_GET
def trial(request: HttpRequest, pk: int) -> HttpResponse:
    """The page of one trial."""
    found = find_trial(request, pk)
    before, after = neighbours(found)
    artifacts = list(found.artifacts.all())
    context = {
        "place": "experiments",
        "trial": found,
        "title": _title(found),
        "point": _point(found),
        "apart": why_apart(found.experiment, [found]).get(found.pk, ""),
        "link": _link(found),
        "before": before,
        "after": after,
        **_allowed(request.user, found),
        "artifacts": artifacts,
        "has_packets": any(a.kind == Artifact.Kind.CAPTURE and a.removed_at is None for a in artifacts),
        "command": command_lines(found.command) if found.command else "",
        "certificate": link_panel(found),
        **_parameters(found),
        **_output(found),
        **_environment(found),
    }
    if found.state == State.FINISHED:
        context |= _measured(found)
    return render(request, "trial/page.html", context)


@require_GET
def live(request: HttpRequest, pk: int) -> HttpResponse:
    """State and rates of an unfinished trial; once it is over the page loads anew and asks no more."""
    # Asked every second on the machine that may be measuring: no column more than is shown.
    found = get_object_or_404(visible_trials(request.user).only(*LIVE_FIELDS), pk=pk)
    if found.is_over:
        return HttpResponseClientRefresh()
    return render(request, "trial/_live.html", {"trial": found})


@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Cancel this trial alone."""
    found = find_trial(request, pk)
    if not may_cancel(request.user, found.experiment):
        raise PermissionDenied
    words = "Cancelled." if found.cancel() else "The trial was over already."
    messages.info(request, words)
    return redirect(found)


@require_GET
def environment(request: HttpRequest, pk: int) -> HttpResponse:
    """What differed around this trial and the chosen one of the same configuration."""
    found = find_trial(request, pk)
    context = {"trial": found, **environment_beside(found, asked(request, "against"))}
    return render(request, "trial/_environment_beside.html", context)


@require_POST
def again(request: HttpRequest, pk: int) -> HttpResponse:
    """Queue this trial once more; the new attempt stands for it."""
    found = find_trial(request, pk)
    if found.experiment.published or not may_cancel(request.user, found.experiment):
        raise PermissionDenied
    try:
        attempt = queue.run_again(found)
    except StaleTrial:
        messages.error(request, "This trial is not over, or a newer attempt stands for it already.", extra_tags="bad")
        return redirect(found)
    messages.success(request, f"Attempt {attempt.attempt} is queued; this page is that attempt's.", extra_tags="ok")
    return redirect(attempt)


@require_GET
def download(request: HttpRequest, pk: int, name: str) -> FileResponse:
    """One stored file of a trial."""
    # Names are compared here: PostgreSQL refuses text with NUL in it, which an address may hold.
    artifact = next((a for a in find_trial(request, pk).artifacts.filter(removed_at=None) if a.name == name), None)
    if artifact is None or not artifact.file.is_file():
        raise Http404(f"no such file: {name}")
    return FileResponse(artifact.file.open("rb"), as_attachment=True, filename=f"trial-{pk}-{artifact.name}")


def _allowed(user: Any, found: Trial) -> dict[str, bool]:
    """What this reader may do with the trial as it is."""
    allowed = not found.experiment.published and may_cancel(user, found.experiment)
    return {
        "may_cancel": allowed and not found.is_over,
        "may_run_again": allowed and found.is_over and not found.superseded,
    }


def _point(found: Trial) -> str:
    return parameters_sentence(found.configuration.parameters, swept_of(found.experiment))


def _title(found: Trial) -> str:
    total = found.experiment.specification.get("repetitions", 3)
    of = f" of {total}" if found.kind == Kind.MEASURED and not found.experiment.published else ""
    again = f", attempt {found.attempt}" if found.attempt > 1 else ""
    return f"Trial at {_point(found)}, {trial_role(found.kind, found.repetition)}{of}{again}"


def _link(found: Trial) -> str:
    if found.experiment.published:
        return ""
    return design.link_of(found.configuration.parameters).describe()


def _parameters(found: Trial) -> dict[str, Any]:
    values = found.configuration.parameters
    return {"parameters": [(parameter_label(name), value_words(name, value)) for name, value in values.items()]}


@dataclass(frozen=True)
class Tile:
    """One headline metric of this trial among its repetitions."""

    label: str
    definition: str
    value: str
    unit: str
    dots: Dots | None
    words: str


def _measured(found: Trial) -> dict[str, Any]:
    values = dict(found.measurements.filter(scope="all").values_list("metric", "value"))
    published = _published_here(found)
    repetitions = repetitions_of(found, HEADLINE)
    tiles = [_tile(found, metric, values, repetitions[metric], published.get(metric)) for metric in HEADLINE]
    missing = [(find(metric).label, reason) for metric, reason in found.not_available.items() if _known(metric)]
    wire, observer = _wire(found, values), observer_of(found)
    return {
        "tiles": tiles,
        "published_shown": any(tile.dots and tile.dots.published is not None for tile in tiles),
        "published_name": published.get("name", ""),
        "metric_rows": metric_rows(values),
        "printed": _printed_tables(found.tables),
        "missing": missing,
        "observer": observer,
        "trust_rows": trust_rows(found, values, wire["counters"], observer),
        **wire,
    }


def _known(metric: str) -> bool:
    try:
        find(metric)
    except KeyError:
        return False
    return True


def _tile(
    found: Trial,
    metric: str,
    values: Mapping[str, float],
    repetitions: list[tuple[int, float]],
    published: float | None,
) -> Tile:
    description = find(metric)
    value = values.get(metric)
    number, unit = numbers.quantity(value, description.unit)
    if value is None:
        reason = found.not_available.get(metric, "not measured")
        return Tile(description.label, description.definition, number, unit, None, reason)
    others = [other for pk, other in repetitions if pk != found.pk]
    # A full-size published value beside a miniature would press all repetitions into one dot.
    near = published if published is not None and value / 4 < published < value * 4 else None
    words = "the only counted repetition"
    if others:
        middle = median([other for _, other in repetitions])
        apart = numbers.percent_apart(value, middle)
        words = f"{apart} from the median of {len(repetitions)}" if apart else f"the median of {len(repetitions)} is 0"
    return Tile(description.label, description.definition, number, unit, dot_strip(value, others, near), words)


def _published_here(found: Trial) -> dict[str, Any]:
    """Published values of the six metrics at the same number of hosts."""
    study = published_like(found.experiment).first()
    if study is None:
        return {}
    rows = Measurement.objects.filter(
        trial__experiment=study, trial__configuration__hosts=found.configuration.hosts, metric__in=HEADLINE, scope="all"
    )
    return {"name": published_name(study), **dict(rows.values_list("metric", "value"))}


def _wire(found: Trial, values: Mapping[str, float]) -> dict[str, Any]:
    """Charts and trust of the stored analysis; nothing where the trial has no capture."""
    analysis = read_analysis(found)
    counters = ((analysis or {}).get("trust") or {}).get("counters") or {}
    series = (analysis or {}).get("series") or {}
    if analysis is None or not series.get("wire_bytes"):
        return {"analysis": False, "counters": counters}
    sizes = analysis.get("size_histogram") or {}
    mean = values.get("throughput_Bps")
    wire = throughput_over_time(series.get("wire_bytes") or [], series.get("bin_s") or 1.0, mean_bytes_per_s=mean)
    gaps = analysis.get("interarrival") or {}
    ccdf = gaps.get("ccdf") or {}
    return {
        "analysis": True,
        "bin_words": f"{1000 * (series.get('bin_s') or 0):g}{numbers.NARROW}ms",
        "mean_throughput": mean,
        "throughput": wire,
        "sizes": packet_sizes(size_classes(sizes.get("orig_len") or [], sizes.get("packets") or [])),
        "small_share": values.get("small_packet_share"),
        "gaps": interarrival_ccdf(ccdf.get("gap_s") or [], ccdf.get("share_longer") or [], gaps.get("fits") or []),
        "fits": gaps.get("fits") or [],
        **_matrix(analysis.get("matrices") or {}),
        **_flows(analysis.get("flows") or []),
        "counters": counters,
        "legacy": (analysis.get("legacy_2011") or {}).get("figures") or {},
        "legacy_caveats": (analysis.get("legacy_2011") or {}).get("caveats") or [],
    }


def _matrix(matrices: Mapping[str, Any]) -> dict[str, Any]:
    """Rank to rank where the handshakes told the ranks, else host to host."""
    of = "rank" if (matrices.get("ranks") or {}).get("labels") else "host"
    chosen = matrices.get(f"{of}s") or {}
    figure = traffic_matrix(chosen.get("labels") or [], chosen.get("wire_bytes") or [], of=of)
    return {"matrix": figure, "matrix_of": of, "matrix_omitted": chosen.get("omitted") or 0}


def _flows(flows: list[dict[str, Any]]) -> dict[str, Any]:
    """The connections that carried most, with their share of all bytes in percent."""
    total = sum(flow["wire_bytes"] for flow in flows) or 1
    largest = sorted(flows, key=lambda flow: -flow["wire_bytes"])[:MOST_FLOWS]
    return {
        "flows": [{**flow, "percent": 100 * flow["wire_bytes"] / total} for flow in largest],
        "flow_count": len(flows),
    }


def _printed_tables(tables: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The workload's own tables, words before numbers: the database keeps rows but not the order of their columns."""
    found = []
    for name, rows in tables.items():
        if not rows:
            continue
        keys = sorted(
            rows[0], key=lambda key: (not isinstance(rows[0][key], str), _STATISTICS.get(key.partition("_")[0], 9))
        )
        found.append({"name": name, "keys": keys, "rows": [[row.get(key) for key in keys] for row in rows]})
    return found


def _output(found: Trial) -> dict[str, Any]:
    """Standard output and error, from the files once there are any, from the last heartbeat before."""
    texts: dict[str, Any] = {}
    for artifact in found.artifacts.filter(kind__in=["stdout", "stderr", "input"], removed_at=None):
        if artifact.file.is_file():
            text, cut = _tail(artifact.file)
            texts[artifact.name] = {"artifact": artifact, "text": text, "cut": cut, "lines": text.count("\n")}
    return {"texts": texts}


def _tail(file: Path) -> tuple[str, bool]:
    size = file.stat().st_size
    with file.open("rb") as stream:
        stream.seek(max(0, size - SHOWN_BYTES))
        return stream.read().decode(errors="replace"), size > SHOWN_BYTES


def _environment(found: Trial) -> dict[str, Any]:
    facts = found.environment.facts if found.environment else {}
    beside = environment_beside(found) if found.is_over else {"siblings": []}
    return {"facts": list(flat(facts)), "conditions": list(flat(found.conditions)), **beside}
