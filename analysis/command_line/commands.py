"""Commands of the command line: one function per command, with its name.

Tables are for people; JSON has the names of the library.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from analysis.capture.source import rereadable
from analysis.capture.tables import DecoderName, tables_of
from analysis.capture_analysis import CaptureAnalysis, analyse
from analysis.catalogue import METRICS
from analysis.command_line import render
from analysis.numbers import plural, significant
from analysis.traffic import legacy
from analysis.traffic.flow_gaps import interarrival_by_connection
from analysis.traffic.interarrival import QUANTILES

LONG_FILE_BYTES: Final = 200_000_000
"""Longer files show a progress bar on terminals."""


@contextmanager
def _progress(path: str | Path) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a callback that draws a progress bar; None if it is not needed."""
    try:
        long = Path(path).stat().st_size > LONG_FILE_BYTES
    except OSError:
        long = False
    if not long or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # takes 0.1 s, which only long files may cost
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(Path(path).name)
        yield lambda done, size: bar.update(task, completed=done, total=size)


def _analyse(path: str | Path, options: argparse.Namespace) -> CaptureAnalysis:
    with _progress(path) as progress:
        return analyse(
            path,
            mpi_ports=options.mpi_ports,
            decoder=options.decoder,
            mtu=options.mtu,
            bootstrap=getattr(options, "bootstrap", 0),
            progress=progress,
        )


def _print_json(value: Any) -> None:
    json.dump(value, sys.stdout, allow_nan=False, separators=(",", ":") if not sys.stdout.isatty() else None)
    print()


def stats(options: argparse.Namespace) -> None:
    """Print all metrics of all files."""
    if options.json:
        results = [_stats_json(_analyse(path, options), options) for path in options.files]
        _print_json(results[0] if len(results) == 1 else results)
        return
    for number, path in enumerate(options.files):
        print("\n" * (number > 0) + _stats_text(_analyse(path, options), options))


def _stats_json(result: CaptureAnalysis, options: argparse.Namespace) -> dict[str, Any]:
    plain = result.to_dict()
    if options.legacy:
        plain["legacy_2011"] = result.legacy_2011(options.rtt)
    return plain


def _stats_text(result: CaptureAnalysis, options: argparse.Namespace) -> str:
    blocks = [_verdict(result), "", render.metric_table(result)]
    fits = result.interarrival.get("fits")
    if fits:
        blocks += ["", "Inter-arrival fits", render.fit_table(fits)]
    if result.not_available:
        blocks += ["", "Not available", render.missing_table(result)]
    if options.legacy:
        printed = result.legacy_2011(options.rtt)
        blocks += ["", "As published in 2011", render.table((f"  {label}", text) for label, text in printed.items())]
        blocks += [f"  Note: {caveat}" for caveat in legacy.CAVEATS]
    return "\n".join(blocks)


def _verdict(result: CaptureAnalysis) -> str:
    notes = [*result.trust.reasons, *result.capture.get("notes", [])]
    return "\n".join([f"{result.file}: trust {result.trust.verdict}", *(f"  {note}" for note in notes)])


_FLOW_COLUMNS: Final = (
    ("packets", "1"),
    ("wire_bytes", "B"),
    ("goodput_bytes", "B"),
    ("duration_s", "s"),
    ("goodput_bps", "bit/s"),
    ("rtt_min_s", "s"),
    ("rtt_median_s", "s"),
    ("retransmitted_segments", "1"),
    ("handshake", ""),
)


def flows(options: argparse.Namespace) -> None:
    """Print one line per connection, those with most bytes first."""
    columns: tuple[tuple[str, str], ...] = _FLOW_COLUMNS
    with rereadable(options.file) as file:
        result = replace(_analyse(file, options), file=options.file)
        if options.interarrival:
            _add_interarrival(result.flows, file, options.decoder)
    if options.interarrival:
        columns = (*_FLOW_COLUMNS, *((identifier, "s") for identifier in ("interarrival_mean_s", *QUANTILES)))
    rows = sorted(result.flows, key=lambda flow: -flow["wire_bytes"])[: options.limit]
    if options.json:
        _print_json({"flows": rows, "trust": result.trust.to_dict()})
        return
    print(_verdict(result))
    lines = [["a", "b", "ranks", *(name for name, _ in columns)]]
    for flow in rows:
        ends = [f"{flow[f'host_{end}']}:{flow[f'port_{end}']}" for end in "ab"]
        ranks = [flow.get(f"rank_{end}") for end in "ab"]
        named = "-".join(str(rank) for rank in ranks) if all(rank is not None for rank in ranks) else ""
        lines.append([*ends, named, *(render.cell(flow.get(name), unit) for name, unit in columns)])
    print(render.table(lines, right=frozenset(range(3, len(columns) + 3))))


def _add_interarrival(flows: list[dict[str, Any]], file: str | Path, decoder: DecoderName) -> None:
    gaps = interarrival_by_connection(tables_of(file, decoder))
    for flow in flows:
        flow.update(gaps[flow["connection"]])


def matrix(options: argparse.Namespace) -> None:
    """Print a matrix: rows send, columns receive."""
    result = _analyse(options.file, options)
    chosen = result.matrices[options.by]
    if options.json:
        _print_json({"matrix": chosen, "trust": result.trust.to_dict()})
        return
    quantities = [name for name, value in chosen.items() if name != "labels" and isinstance(value, list)]
    if options.quantity not in quantities:
        raise ValueError(f"no quantity {options.quantity!r}; there are {', '.join(quantities)}")
    unit = {"bytes": "B", "s": "s"}.get(options.quantity.rsplit("_", 1)[-1], "1")
    labels = [str(label) for label in chosen["labels"]]
    print(_verdict(result))
    lines = [["from \\ to", *labels]]
    for label, row in zip(labels, chosen[options.quantity], strict=True):
        lines.append([label, *(render.cell(value, unit) for value in row)])
    print(render.table(lines, right=frozenset(range(1, len(labels) + 1))))
    for name in ("source", "by_host_alone", "note"):
        if chosen.get(name):
            print(f"{name.replace('_', ' ')}: {chosen[name]}")


def series(options: argparse.Namespace) -> None:
    """Print tab-separated columns: time, packets, bytes, payload."""
    result = _analyse(options.file, options)
    chosen = (result if options.scope == "all" else result.mpi).series
    if options.json:
        _print_json({"series": chosen, "trust": result.trust.to_dict()})
        return
    names = [name for name, value in chosen.items() if isinstance(value, list)]
    print("\t".join(["time_s", *names]))
    for number, values in enumerate(zip(*(chosen[name] for name in names), strict=True)):
        print("\t".join([f"{number * chosen['bin_s']:.6g}", *map(str, values)]))


def packets(options: argparse.Namespace) -> None:
    """Export decoded packets, one row per frame."""
    from analysis.capture.export import write_packets  # polars is only needed here

    count = write_packets(options.file, options.output, decoder=options.decoder)
    print(f"{plural(count, 'packet')} written to {options.output}", file=sys.stderr)


def dissect(options: argparse.Namespace) -> None:
    """Print full dissection trees of tshark."""
    from analysis.capture.dissect import dissect as dissected  # pyshark is only needed here

    frames = dissected(options.file, frames=options.frames, display_filter=options.filter, limit=options.limit)
    if options.json:
        _print_json(frames)
    else:
        print(json.dumps(frames, indent=1, ensure_ascii=False))


def compare(options: argparse.Namespace) -> None:
    """Print the metrics of A and B, and B / A."""
    a, b = _analyse(options.a, options), _analyse(options.b, options)
    if options.json:
        _print_json({"a": a.to_dict(), "b": b.to_dict(), "ratio": _ratios(a, b)})
        return
    print(_verdict(a) + "\n" + _verdict(b))
    ratios = _ratios(a, b)
    lines = [["", "A", "B", "B / A"]]
    for entry in METRICS.values():
        values = [side.metrics.get(entry.id) for side in (a, b)]
        if any(value is not None for value in values):
            ratio = significant(ratios[entry.id], 3) if entry.id in ratios else ""
            lines.append([entry.label, *(render.cell(value, entry.unit) for value in values), ratio])
    print(render.table(lines, right=frozenset({1, 2, 3})))


def _ratios(a: CaptureAnalysis, b: CaptureAnalysis) -> dict[str, float]:
    return {name: b.metrics[name] / value for name, value in a.metrics.items() if value and name in b.metrics}
