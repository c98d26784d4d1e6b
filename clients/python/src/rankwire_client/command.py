"""`rankwire`: the client as a command.

Exit codes: 0 it worked; 1 trials failed, were cancelled or are held; 2 bad input, refused by this command or by the
server; 3 the server was not reached, failed, or an experiment was not over in time; 130 ended with Ctrl-C.
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what ``arguments`` say and return the exit code; argparse itself exits with 2."""
    asked = _parser().parse_args(arguments)
    try:
        with Client() as client:
            if asked.what in _FILES:
                return _FILES[asked.what](client, asked)
            told = _told(client, asked)
    except Refused as refused:
        for problem in [str(each) for each in refused.problems] or [str(refused)]:
            print(f"rankwire: {problem}", file=sys.stderr)
        return SERVER if refused.status >= 500 else BAD_INPUT
    except RankwireError as error:
        print(f"rankwire: {error}", file=sys.stderr)
        return SERVER
    except (OSError, UnicodeDecodeError, ValueError) as error:
        print(f"rankwire: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("rankwire: ended; what was queued goes on", file=sys.stderr)
        return INTERRUPTED
    if asked.what == "validate":
        print(_would_do(told) if not asked.json else json.dumps(told, indent=2, ensure_ascii=False))
        return OK
    if asked.what == "result" or asked.json:
        print(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        print(_line(told))
    if asked.what == "result" or (asked.what == "submit" and not asked.wait):
        return OK
    trials = told["trials"]
    return FAILED_TRIALS if trials["failed"] or trials["cancelled"] or told["status"] == "held" else OK


def _told(client: Client, asked: argparse.Namespace) -> dict[str, Any]:
    if asked.what == "status":
        return client.experiment(asked.slug)
    if asked.what == "result":
        return client.result(asked.slug)
    if asked.what == "validate":
        return client.validate(Path(asked.file).read_text(encoding="utf-8"), project=asked.project)
    told = client.submit(Path(asked.file).read_text(encoding="utf-8"), project=asked.project)
    if not asked.wait:
        return told
    if not sys.stderr.isatty():
        return client.wait(told["slug"], time_limit_s=asked.time_limit)
    try:
        return client.wait(told["slug"], time_limit_s=asked.time_limit, progress=_show)
    finally:
        print(file=sys.stderr)


def _results(client: Client, asked: argparse.Namespace) -> int:
    """Write the table to its file, or to standard output when all of it is here."""
    client.experiment(asked.slug)  # the table of an experiment that is not there would be empty
    table = {"form": asked.format, "rows": asked.rows, "experiment": asked.slug, "every": asked.every}
    if asked.output:
        client.table(asked.output, **table)
        return OK
    if asked.format == "parquet" and sys.stdout.isatty():
        raise ValueError("Parquet is nothing to read on a terminal: name a file with -o")
    with TemporaryDirectory(prefix="rankwire-") as directory:
        with client.table(Path(directory) / "table", **table).open("rb") as stream:
            shutil.copyfileobj(stream, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    return OK


def _chart(client: Client, asked: argparse.Namespace) -> int:
    """Write the table behind a chart to its file or to standard output; without a name, say which charts there are."""
    of = int(asked.of[2:]) if asked.of.startswith("t:") else asked.of
    if not asked.name:
        for chart in client.charts(of):
            views = f" ({', '.join(chart['views'])})" if chart["views"] else ""
            print(f"{chart['name']}: {chart['title']}{views}")
    elif asked.output:
        client.chart(of, asked.name, asked.output, view=asked.view)
    else:
        with TemporaryDirectory(prefix="rankwire-") as directory:
            table = client.chart(of, asked.name, Path(directory) / "chart.csv", view=asked.view)
            sys.stdout.write(table.read_bytes().decode())
    return OK


def _download(client: Client, asked: argparse.Namespace) -> int:
    """Store the files of a trial that are named, otherwise all that are kept."""
    kept = [each["name"] for each in client.trial(asked.trial)["artifacts"] if each["removed_at"] is None]
    if wrong := [name for name in asked.names if name not in kept]:
        raise ValueError(f"trial {asked.trial} has no file {wrong[0]}; it has {', '.join(kept) or 'none'}")
    directory = Path(asked.output)
    directory.mkdir(parents=True, exist_ok=True)
    for name in asked.names or kept:
        print(client.download(asked.trial, name, directory / name.replace("/", "-")))
    return OK


def _bundle(client: Client, asked: argparse.Namespace) -> int:
    target = asked.output or f"{asked.slug}.zip"
    print(client.bundle(asked.slug, target, captures=asked.captures, anonymise=asked.anonymise))
    return OK


def _import(client: Client, asked: argparse.Namespace) -> int:
    told = client.import_(asked.file, project=asked.project, dry_run=asked.dry_run)
    if asked.json:
        print(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        for each in told["arrivals"]:
            note = f"; {each['note']}" if each["note"] else ""
            print(f"{each['name']}: {_plural(each['trials'], 'trial')}, {_plural(each['files'], 'file')}{note}")
        for sentence in told["left_out"]:
            print(f"left out: {sentence}")
    return OK


_FILES = {"results": _results, "chart": _chart, "download": _download, "bundle": _bundle, "import": _import}
"""What brings or sends files."""


def _show(experiment: dict[str, Any]) -> None:
    print(f"\r\033[K{_line(experiment)}", end="", file=sys.stderr, flush=True)


def _line(experiment: dict[str, Any]) -> str:
    trials = experiment["trials"]
    over = trials["finished"] + trials["failed"] + trials["cancelled"]
    failed = f", {trials['failed']} failed" if trials["failed"] else ""
    return f"{experiment['slug']}: {experiment['status']}, {over} of {trials['total']} trials over{failed}"


def _would_do(told: dict[str, Any]) -> str:
    trials, points = _plural(told["trials"], "trial"), _plural(told["configurations"], "configuration")
    first = f"{trials} of {points}, about {told['seconds'] / 60:.1f} minutes"
    return "\n".join([first, *told["notes"]])


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _seconds(text: str) -> float:
    """A time limit. Raises ValueError for what is none: nothing would ever be over after `nan` seconds."""
    seconds = float(text)
    if not 0 <= seconds < math.inf:
        raise ValueError(text)
    return seconds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rankwire",
        description="Ask a Rankwire server. Its address stands in RANKWIRE_URL, the token in RANKWIRE_TOKEN.",
        epilog="Exit codes: 0 it worked, 1 failed, cancelled or held trials, 2 bad input, 3 server, network or time limit.",
    )
    commands = parser.add_subparsers(dest="what", required=True)

    def command(name: str, about: str, *arguments: tuple[str, dict[str, Any]]) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=about)
        for flag, options in arguments:
            added.add_argument(flag, **options)
        return added

    file, slug = ("file", {"metavar": "FILE"}), ("slug", {"metavar": "SLUG"})
    project = ("--project", {"help": "slug of the project; otherwise `default`"})
    as_json = ("--json", {"action": "store_true", "help": "all that the server tells"})
    output: dict[str, Any] = {"metavar": "FILE", "help": "otherwise standard output"}
    submit = command("submit", "queue the experiment of a YAML file", file, project, as_json)
    submit.add_argument("--wait", action="store_true", help="until it is over")
    submit.add_argument("--time-limit", type=_seconds, default=86_400.0, metavar="SECONDS", help="of --wait (a day)")
    command("validate", "what the experiment of a YAML file would do, without queueing it", file, project, as_json)
    command("status", "how far an experiment is", slug, as_json)
    command("result", "its answer and everything measured, as JSON", slug)
    results = command("results", "its trials with every parameter and everything measured, as a table", slug)
    results.add_argument("--format", choices=["csv", "json", "jsonl", "parquet"], default="csv", help="otherwise csv")
    results.add_argument("--rows", choices=["trials", "configurations", "measurements"], default="trials")
    results.add_argument("--every", action="store_true", help="also trials that enter no statistics")
    results.add_argument("-o", "--output", **output)
    chart = command("chart", "the table behind a chart of its page, as CSV")
    chart.add_argument("of", metavar="SLUG", help="of the experiment; t:NUMBER for a trial")
    chart.add_argument("name", nargs="?", metavar="NAME", help="otherwise the charts that there are")
    chart.add_argument("--view", help="one of the chart's views; otherwise that with which it opens")
    chart.add_argument("-o", "--output", **output)
    download = command("download", "files of a trial, checked against their hashes")
    download.add_argument("trial", type=int, metavar="TRIAL", help="its number")
    download.add_argument("names", nargs="*", metavar="NAME", help="otherwise all")
    download.add_argument("-o", "--output", metavar="DIRECTORY", default=".", help="otherwise where you are")
    bundle = command("bundle", "an experiment with its files, for another Rankwire", slug)
    bundle.add_argument("--captures", choices=["all", "headers", "none"], default="all")
    bundle.add_argument("--anonymise", action="store_true", help="other addresses; not with all of the captures")
    bundle.add_argument("-o", "--output", metavar="FILE", help="otherwise SLUG.zip")
    about = "a bundle (.zip), a description (.yaml), another tool's report (.json)"
    brought = command("import", about, file, project, as_json)
    brought.add_argument("--dry-run", action="store_true", help="say what would be created, and create nothing")
    return parser


if __name__ == "__main__":
    sys.exit(main())
