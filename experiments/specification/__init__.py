"""Specification of an experiment, with one validator for pages, YAML and REST."""

from experiments.specification.fields import ExperimentSpec
from experiments.specification.parameters import Capture, Link
from experiments.specification.validation import MAX_TRIALS, parse, parse_yaml, restore

__all__ = ["MAX_TRIALS", "Capture", "ExperimentSpec", "Link", "parse", "parse_yaml", "restore"]
