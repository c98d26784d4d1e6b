"""What an experiment asks: its specification, validated in one place for browser, YAML, REST and command line. Pure."""

from experiments.spec.fields import ExperimentSpec
from experiments.spec.parameters import Capture, Link
from experiments.spec.validation import MAX_TRIALS, parse, parse_yaml, restore

__all__ = ["MAX_TRIALS", "Capture", "ExperimentSpec", "Link", "parse", "parse_yaml", "restore"]
