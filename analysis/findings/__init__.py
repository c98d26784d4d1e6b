"""Conclusions in plain words, each with its evidence: ``find(study)`` applies every rule of the registry.

A new rule is a function in one of the ``*_rules`` modules under ``@rule``; importing them here is what enters them, in the
order in which findings are listed within their group.
"""

from analysis.findings import scaling_rules  # noqa: I001  (the order is the order of the findings)
from analysis.findings import balance_rules, mpi_rules, network_rules, traffic_rules, trust_rules, wait_rules
from analysis.findings.diagnosis import Curve, Diagnosis, FittedModel, Model, Slice, diagnose
from analysis.findings.registry import RULES, Evidence, Finding
from analysis.findings.report import Report, find
from analysis.findings.verdict import Verdict

__all__ = [
    "RULES",
    "Curve",
    "Diagnosis",
    "Evidence",
    "Finding",
    "FittedModel",
    "Model",
    "Report",
    "Slice",
    "Verdict",
    "balance_rules",
    "diagnose",
    "find",
    "mpi_rules",
    "network_rules",
    "scaling_rules",
    "traffic_rules",
    "trust_rules",
    "wait_rules",
]
