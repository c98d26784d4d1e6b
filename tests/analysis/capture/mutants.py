"""Damaged copies of captures, for ``corpus.py`` to look at: cut, flipped, doubled, with bytes put in or taken out.

    python -m tests.analysis.capture.mutants DIRECTORY INTO [--count N] [--seed K] [--own]

Writes N files into INTO, the same for the same seed; ``--own`` takes the suite's captures (of ``fuzz_capture.py``) instead of those below
DIRECTORY. Of long captures the beginning is taken, so that what is damaged is a good part of it.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.corpus import distinct
from tests import fuzz_capture

LONGEST_BYTES: Final = 200_000
HEADERS_BYTES: Final = 400
"""Half of the damage lies here, where a byte says what all the others are."""


def _place(data: bytearray, chance: random.Random) -> int:
    return chance.randrange(min(len(data), HEADERS_BYTES) if chance.random() < 0.5 else len(data))


def cut(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(1, len(data) + 1) :]


def flip(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 2, 8))):
        data[_place(data, chance)] ^= 1 << chance.randrange(8)


def replace(data: bytearray, chance: random.Random) -> None:
    at = _place(data, chance)
    data[at : at + 4] = chance.choice((b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\1", b"\1\0\0\0", chance.randbytes(4)))


def double(data: bytearray, chance: random.Random) -> None:
    """A piece stands where it stood, and once more behind itself: whole records, where the length is right."""
    at = _place(data, chance) // 4 * 4
    piece = data[at : at + chance.choice((4, 16, 28, 32, 64, 256, 4096))]
    data[at:at] = piece


def insert(data: bytearray, chance: random.Random) -> None:
    at = _place(data, chance)
    data[at:at] = chance.randbytes(chance.choice((1, 2, 4, 16, 64)))


def remove(data: bytearray, chance: random.Random) -> None:
    at = _place(data, chance)
    del data[at : at + chance.choice((1, 2, 4, 16, 64))]


KINDS: Final[tuple[Callable[[bytearray, random.Random], None], ...]] = (
    cut,
    flip,
    flip,
    replace,
    double,
    insert,
    remove,
)


def mutant(original: bytes, chance: random.Random) -> bytes:
    data = bytearray(original[:LONGEST_BYTES])
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        if data:
            chance.choice(KINDS)(data, chance)
    return bytes(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("into", type=Path)
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--own", action="store_true")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    originals = (
        [(f"own-{number:03}", data) for number, data in enumerate(fuzz_capture.seeds())]
        if options.own
        else [(path.name, path.read_bytes()) for path in distinct(options.directory)]
    )
    options.into.mkdir(parents=True, exist_ok=True)
    for number in range(options.count):
        name, data = originals[number % len(originals)]
        (options.into / f"{number:05}-{name}").write_bytes(mutant(data, chance))


if __name__ == "__main__":
    main()
