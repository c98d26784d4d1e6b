"""Arguments of the command line; ``command_line.commands`` has the commands.

Exit status: 0 success, 1 usage error, 2 a capture that could not be analysed (one line on standard error).
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from analysis.errors import CaptureError

EXIT_WRONG_USE = 1
EXIT_UNREADABLE = 2


class _Parser(argparse.ArgumentParser):
    """Exits with 1 on usage errors, because 2 means an unreadable capture."""

    def error(self, message: str) -> None:  # type: ignore[override]
        self.print_usage(sys.stderr)
        self.exit(EXIT_WRONG_USE, f"{self.prog}: {message}\n")


def _range(text: str, highest: int, what: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,10})(?:-(\d{1,10}))?", text)
    low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if not 0 <= low <= high <= highest:
        raise argparse.ArgumentTypeError(f"{text!r} is not a range of {what}, LO-HI")
    return low, high


def port_range(text: str) -> tuple[int, int]:
    """Parse LO-HI or one port. Raises argparse.ArgumentTypeError."""
    return _range(text, 65_535, "ports")


def frame_range(text: str) -> tuple[int, int]:
    """Parse FIRST-LAST or one frame number, from 1. Raises argparse.ArgumentTypeError."""
    first, last = _range(text, 2**32, "frame numbers")
    if first == 0:
        raise argparse.ArgumentTypeError("frames are numbered from 1")
    return first, last


def positive(text: str) -> int:
    """Parse a whole number above 0. Raises argparse.ArgumentTypeError."""
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser; ``run`` names a function of the module ``commands``."""
    parser = _Parser(prog="python -m analysis", description="Packet analysis of MPI traffic.")
    commands = parser.add_subparsers(dest="run", required=True, metavar="COMMAND", parser_class=_Parser)
    json_option = _Parser(add_help=False)
    json_option.add_argument("--json", action="store_true", help="keyed by the ids of the metric catalogue")
    common = _Parser(add_help=False, parents=[json_option])
    common.add_argument("--decoder", choices=("native", "pyshark"), default="native")
    common.add_argument("--mpi-ports", type=port_range, metavar="LO-HI", help="TCP ports of the MPI library")
    common.add_argument("--mtu", type=positive, metavar="BYTES", help="of the links, to recognise coalesced segments")

    _add_measuring(commands, common)
    packets = commands.add_parser("packets", help="decoded packets as Parquet or CSV, by the name of OUTPUT")
    packets.add_argument("file", metavar="FILE")
    packets.add_argument("output", metavar="OUTPUT")
    packets.add_argument("--decoder", choices=("native", "pyshark"), default="native")

    dissect = commands.add_parser("dissect", parents=[json_option], help="the full dissection of a few packets")
    dissect.add_argument("file", metavar="FILE")
    dissect.add_argument("--frames", type=frame_range, metavar="FIRST-LAST")
    dissect.add_argument("--filter", metavar="EXPRESSION", help="a Wireshark display filter")
    dissect.add_argument("--limit", type=positive, default=50, metavar="N")

    compare = commands.add_parser("compare", parents=[common], help="compare the metrics of two captures")
    compare.add_argument("a", metavar="A")
    compare.add_argument("b", metavar="B")
    return parser


def _add_measuring(commands: Any, common: argparse.ArgumentParser) -> None:
    stats = commands.add_parser("stats", parents=[common], help="every metric of the catalogue")
    stats.add_argument("files", nargs="+", metavar="FILE")
    stats.add_argument("--legacy", action="store_true", help="add the report of 2011")
    stats.add_argument("--rtt", metavar="SECONDS", help="mean of the pings, for --legacy")
    stats.add_argument("--bootstrap", type=int, default=0, metavar="N", help="replicates for p-values of the fits")

    flows = commands.add_parser("flows", parents=[common], help="one line per connection")
    flows.add_argument("--limit", type=positive, metavar="N", help="only the N connections with most bytes")
    flows.add_argument(
        "--interarrival", action="store_true", help="inter-arrival times of each connection and direction"
    )
    matrix = commands.add_parser("matrix", parents=[common], help="traffic between hosts or ranks")
    matrix.add_argument("--by", choices=("hosts", "ranks"), default="ranks")
    matrix.add_argument("--quantity", default="wire_bytes", help="packets, wire_bytes, payload_bytes ...")
    series = commands.add_parser("series", parents=[common], help="packets and bytes over time")
    series.add_argument("--scope", choices=("all", "mpi"), default="all")
    for command in (flows, matrix, series):
        command.add_argument("file", metavar="FILE")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    options = build_parser().parse_args(arguments)
    try:
        commands = import_module("analysis.command_line.commands")  # --help does not need numba
        getattr(commands, options.run)(options)
        sys.stdout.flush()
    except (CaptureError, ValueError) as error:
        print(f"analysis: {error}", file=sys.stderr)
        return EXIT_UNREADABLE if isinstance(error, CaptureError) else EXIT_WRONG_USE
    except BrokenPipeError:  # the reader of the output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
