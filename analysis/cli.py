"""The command line: one small function per command, readable tables by default, JSON on demand.

Exit status: 0 done, 1 wrong use or a failed comparison of files, 2 a capture that could not be analysed (one line on
standard error).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from typing import Any

from analysis.errors import CaptureError

EXIT_UNREADABLE = 2


def port_range(text: str) -> tuple[int, int]:
    """ "LO-HI" or one port; argparse.ArgumentTypeError otherwise."""
    match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", text)
    low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if not 0 <= low <= high <= 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port range LO-HI inside 0-65535")
    return low, high


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m analysis", description="Packet analysis of MPI traffic.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--decoder", choices=("auto", "native", "pyshark"), default="auto")
    common.add_argument("--mpi-ports", type=port_range, metavar="LO-HI", help="TCP ports of the MPI library")
    common.add_argument("--mtu", type=int, metavar="BYTES", help="of the links, to recognise super-segments")
    common.add_argument("--json", action="store_true", help="keyed by the ids of the metric catalogue")
    stats = commands.add_parser("stats", parents=[common], help="every metric of the catalogue")
    stats.add_argument("files", nargs="+", metavar="FILE")
    stats.add_argument(
        "--legacy", action="store_true", help="the report of 2011, as published, beside the sound figures"
    )
    stats.add_argument("--rtt", metavar="SECONDS", help="mean of the pings for --legacy")
    stats.set_defaults(run=_stats)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options) or 0)
    except CaptureError as error:
        print(f"analysis: {error}", file=sys.stderr)
        return EXIT_UNREADABLE
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stderr.close()
        return 0


def _analyse(path: str, options: argparse.Namespace) -> Any:
    from analysis.capture_analysis import analyse  # numba takes a quarter of a second; --help should not

    return analyse(path, mpi_ports=options.mpi_ports, decoder=options.decoder, mtu=options.mtu)


def _stats(options: argparse.Namespace) -> None:
    results = [_analyse(path, options) for path in options.files]
    if options.json:
        found = [_json(result, options) for result in results]
        json.dump(found[0] if len(found) == 1 else found, sys.stdout, allow_nan=False)
        print()
        return
    print("\n\n".join(_report(result, options) for result in results))


def _json(result: Any, options: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = result.to_dict()
    if options.legacy:
        found["legacy_2011"] = result.legacy_2011(options.rtt)
    return found


def _report(result: Any, options: argparse.Namespace) -> str:
    from analysis import legacy, render

    blocks = [f"{result.file}: {result.trust.verdict}"]
    blocks += [f"  {reason}" for reason in result.trust.reasons]
    blocks += ["", render.metric_table(result)]
    if result.not_available:
        blocks += ["", "Not available", render.missing_table(result)]
    if options.legacy:
        printed = result.legacy_2011(options.rtt)
        blocks += [
            "",
            "As published in 2011",
            render.table((f"  {k}", v) for k, v in printed.items()),
            "",
            *legacy.CAVEATS,
        ]
    return "\n".join(blocks)
