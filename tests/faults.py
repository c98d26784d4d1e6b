"""Do harm at random moments: `python -m tests.faults [--faults N] [--seed N] [--kinds KIND,...]`. One line tells what happened.

The same test runs in the suite with a few faults; a seed that failed can be run again.
"""

from __future__ import annotations

import argparse
import os
import sys

import pytest


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", help="separated by commas; all unless given")
    arguments = parser.parse_args()
    os.environ["RANKWIRE_FAULTS"] = str(arguments.faults)
    os.environ["RANKWIRE_FAULT_SEED"] = str(arguments.seed)
    if arguments.kinds:
        os.environ["RANKWIRE_FAULT_KINDS"] = arguments.kinds
    return pytest.main(["-q", "-s", "-p", "no:cacheprovider", "tests/workers/faults/test_random_faults.py"])


if __name__ == "__main__":
    sys.exit(main())
