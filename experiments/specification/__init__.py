"""What an experiment asks: its specification, validated in one place for browser, YAML, REST and command line. Pure."""

from experiments.specification.fields import ExperimentSpec
from experiments.specification.parameters import Capture, Link
from experiments.specification.validation import MAX_TRIALS, parse, parse_yaml, restore

__all__ = ["MAX_TRIALS", "Capture", "ExperimentSpec", "Link", "parse", "parse_yaml", "restore"]
