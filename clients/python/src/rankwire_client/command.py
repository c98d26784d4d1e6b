"""Command `rankwire`.

Exit codes: 0 success; 1 failed, cancelled or held trials; 2 input that the command or the server refused; 3 server or network
error, or time limit; 130 interrupted by Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rankwire_client.client import Client
from rankwire_client.errors import RankwireError, Refused

OK, FAILED_TRIALS, BAD_INPUT, SERVER, INTERRUPTED = 0, 1, 2, 3, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; argparse exits with 2 by itself."""
    options = _parser().parse_args(argv)
    try:
        with Client() as client:
            if options.what in _FILES:
                return _FILES[options.what](client, options)
            answer = _request(client, options)
    except Refused as refused:
        for problem in [str(problem) for problem in refused.problems] or [str(refused)]:
            print(f"rankwire: {problem}", file=sys.stderr)
        return SERVER if refused.status >= 500 else BAD_INPUT
    except RankwireError as error:
        print(f"rankwire: {error}", file=sys.stderr)
        return SERVER
    except (OSError, UnicodeDecodeError, ValueError) as error:
        print(f"rankwire: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("rankwire: interrupted; queued trials continue", file=sys.stderr)
        return INTERRUPTED
    if options.what == "validate":
        print(_would_do(answer) if not options.json else json.dumps(answer, indent=2, ensure_ascii=False))
        return OK
    if options.what == "result" or options.json:
        print(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        print(_line(answer))
    if options.what == "result" or (options.what == "submit" and not options.wait):
        return OK
    trials = answer["trials"]
    return FAILED_TRIALS if trials["failed"] or trials["cancelled"] or answer["status"] == "held" else OK


def _request(client: Client, options: argparse.Namespace) -> dict[str, Any]:
    if options.what == "status":
        return client.experiment(options.slug)
    if options.what == "result":
        return client.result(options.slug)
    if options.what == "validate":
        return client.validate(Path(options.file).read_text(encoding="utf-8"), project=options.project)
    answer = client.submit(Path(options.file).read_text(encoding="utf-8"), project=options.project)
    if not options.wait:
        return answer
    if not sys.stderr.isatty():
        return client.wait(answer["slug"], time_limit_s=options.time_limit)
    try:
        return client.wait(answer["slug"], time_limit_s=options.time_limit, progress=_show)
    finally:
        print(file=sys.stderr)


def _results(client: Client, options: argparse.Namespace) -> int:
    """Write the table to a file, or to standard output once it is complete."""
    client.experiment(options.slug)  # a missing experiment would give an empty table
    table = {"form": options.format, "rows": options.rows, "experiment": options.slug, "every": options.every}
    if options.output:
        client.table(options.output, **table)
        return OK
    if options.format == "parquet" and sys.stdout.isatty():
        raise ValueError("Parquet is a binary format: name a file with -o")
    with TemporaryDirectory(prefix="rankwire-") as directory:
        with client.table(Path(directory) / "table", **table).open("rb") as stream:
            shutil.copyfileobj(stream, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    return OK


def _chart(client: Client, options: argparse.Namespace) -> int:
    """Write the table behind a chart, or list the charts without a name."""
    of = int(options.of[2:]) if options.of.startswith("t:") else options.of
    if not options.name:
        for chart in client.charts(of):
            views = f" ({', '.join(chart['views'])})" if chart["views"] else ""
            print(f"{chart['name']}: {chart['title']}{views}")
    elif options.output:
        client.chart(of, options.name, options.output, view=options.view)
    else:
        with TemporaryDirectory(prefix="rankwire-") as directory:
            table = client.chart(of, options.name, Path(directory) / "chart.csv", view=options.view)
            sys.stdout.write(table.read_bytes().decode())
    return OK


def _download(client: Client, options: argparse.Namespace) -> int:
    """Download the named artifacts of a trial, or all."""
    available = [file["name"] for file in client.trial(options.trial)["artifacts"] if file["removed_at"] is None]
    if wrong := [name for name in options.names if name not in available]:
        raise ValueError(f"trial {options.trial} has no file {wrong[0]}; it has {', '.join(available) or 'none'}")
    directory = Path(options.output)
    directory.mkdir(parents=True, exist_ok=True)
    for name in options.names or available:
        print(client.download(options.trial, name, directory / name.replace("/", "-")))
    return OK


def _bundle(client: Client, options: argparse.Namespace) -> int:
    target = options.output or f"{options.slug}.zip"
    print(client.bundle(options.slug, target, captures=options.captures, anonymise=options.anonymise))
    return OK


def _import(client: Client, options: argparse.Namespace) -> int:
    answer = client.import_(options.file, project=options.project, dry_run=options.dry_run)
    if options.json:
        print(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        for arrival in answer["arrivals"]:
            note = f"; {arrival['note']}" if arrival["note"] else ""
            print(
                f"{arrival['name']}: {_plural(arrival['trials'], 'trial')}, {_plural(arrival['files'], 'file')}{note}"
            )
        for sentence in answer["left_out"]:
            print(f"left out: {sentence}")
    return OK


_FILES = {"results": _results, "chart": _chart, "download": _download, "bundle": _bundle, "import": _import}
"""Commands that transfer files."""


def _show(experiment: dict[str, Any]) -> None:
    print(f"\r\033[K{_line(experiment)}", end="", file=sys.stderr, flush=True)


def _line(experiment: dict[str, Any]) -> str:
    trials = experiment["trials"]
    over = trials["finished"] + trials["failed"] + trials["cancelled"]
    failed = f", {trials['failed']} failed" if trials["failed"] else ""
    return f"{experiment['slug']}: {experiment['status']}, {over} of {trials['total']} trials finished{failed}"


def _would_do(answer: dict[str, Any]) -> str:
    trials, points = _plural(answer["trials"], "trial"), _plural(answer["configurations"], "configuration")
    first = f"{trials} of {points}, about {answer['seconds'] / 60:.1f} minutes"
    return "\n".join([first, *answer["notes"]])


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _seconds(text: str) -> float:
    """Parse a time limit. Raises ValueError, also for `nan` and `inf`."""
    seconds = float(text)
    if not 0 <= seconds < math.inf:
        raise ValueError(text)
    return seconds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rankwire",
        description="Client of a Rankwire server. Set its URL in RANKWIRE_URL and the token in RANKWIRE_TOKEN.",
        epilog="Exit codes: 0 success, 1 failed, cancelled or held trials, 2 bad input, 3 server, network or time limit.",
    )
    commands = parser.add_subparsers(dest="what", required=True)

    def command(name: str, about: str, *arguments: tuple[str, dict[str, Any]]) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=about)
        for flag, options in arguments:
            added.add_argument(flag, **options)
        return added

    file, slug = ("file", {"metavar": "FILE"}), ("slug", {"metavar": "SLUG"})
    project = ("--project", {"help": "slug of the project (default: that of the token, or `default`)"})
    as_json = ("--json", {"action": "store_true", "help": "print the whole answer"})
    output: dict[str, Any] = {"metavar": "FILE", "help": "default: standard output"}
    submit = command("submit", "queue the experiment of a YAML file", file, project, as_json)
    submit.add_argument("--wait", action="store_true", help="wait for its end")
    submit.add_argument(
        "--time-limit", type=_seconds, default=86_400.0, metavar="SECONDS", help="limit of --wait (default: a day)"
    )
    command("validate", "show the effect of a YAML file without queueing it", file, project, as_json)
    command("status", "show the progress of an experiment", slug, as_json)
    command("result", "print answer and measurements as JSON", slug)
    results = command("results", "write trials with parameters and measurements as a table", slug)
    results.add_argument("--format", choices=["csv", "json", "jsonl", "parquet"], default="csv", help="default: csv")
    results.add_argument("--rows", choices=["trials", "configurations", "measurements"], default="trials")
    results.add_argument("--every", action="store_true", help="include excluded trials")
    results.add_argument("-o", "--output", **output)
    chart = command("chart", "write the table behind a chart as CSV")
    chart.add_argument("of", metavar="SLUG", help="slug of an experiment; t:NUMBER for a trial")
    chart.add_argument("name", nargs="?", metavar="NAME", help="default: list the charts")
    chart.add_argument("--view", help="view of the chart (default: its first)")
    chart.add_argument("-o", "--output", **output)
    download = command("download", "download artifacts of a trial and verify their hashes")
    download.add_argument("trial", type=int, metavar="TRIAL", help="number of the trial")
    download.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    download.add_argument("-o", "--output", metavar="DIRECTORY", default=".", help="default: current directory")
    bundle = command("bundle", "download an experiment with its artifacts, for another Rankwire", slug)
    bundle.add_argument("--captures", choices=["all", "headers", "none"], default="all")
    bundle.add_argument("--anonymise", action="store_true", help="replace addresses; not with complete captures")
    bundle.add_argument("-o", "--output", metavar="FILE", help="default: SLUG.zip")
    about = "import a bundle (.zip), a description (.yaml) or another tool's report (.json)"
    imported = command("import", about, file, project, as_json)
    imported.add_argument("--dry-run", action="store_true", help="show the effect without importing")
    return parser


if __name__ == "__main__":
    sys.exit(main())
