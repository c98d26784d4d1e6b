"""Certified links of trials and the trust in their captures, by configuration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, Final

from analysis.trust_level import worst
from experiments.models import Trial

QUANTITIES: Final = {
    "link.bandwidth": "bandwidth",
    "link.delay": "delay",
    "link.jitter": "jitter",
    "link.loss": "loss",
    "link.loss_burst": "length of loss bursts",
    "link.mtu": "path MTU",
}
"""Parameters of a link and their rows in a certificate."""
BURST: Final = "link.burst"
_ROWS: Final = {**QUANTITIES, BURST: "burst"}
"""Old certificates have no row for the burst."""
_PARAMETERS: Final = {quantity: parameter for parameter, quantity in _ROWS.items()}


@dataclass(frozen=True, slots=True)
class CertificateStatus:
    """The worst trust of a configuration's counted trials, and their links.

    ``link_kept``: whether all links were as requested (None: not measured). ``achieved``: link parameter -> median in its base unit.
    """

    trust: str
    link_kept: bool | None
    achieved: Mapping[str, float]


def certificate_statuses(configurations: Collection[int]) -> dict[int, CertificateStatus]:
    """Return the certificate status of configurations with trials, by one query."""
    trials = Trial.objects.counted().filter(configuration__in=configurations)
    rows: dict[int, list[tuple[str, Any]]] = defaultdict(list)
    for configuration, trust, certificate in trials.values_list("configuration_id", "trust", "certificate"):
        rows[configuration].append((trust, certificate))
    return {configuration: _status(measured) for configuration, measured in rows.items()}


def _status(rows: Collection[tuple[str, Any]]) -> CertificateStatus:
    certificates = [certificate for _, certificate in rows if certificate]
    link_kept = all(certificate["kept"] for certificate in certificates) if certificates else None
    return CertificateStatus(worst(*(trust for trust, _ in rows)), link_kept, achieved_link(certificates))


def achieved_link(certificates: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return the achieved link parameters, in base units: medians of certificates."""
    return medians(map(achieved, certificates))


def medians(links: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each link parameter."""
    by_name: dict[str, list[float]] = defaultdict(list)
    for link in links:
        for name, value in link.items():
            by_name[name].append(value)
    return {name: median(values) for name, values in by_name.items()}


def achieved(certificate: Mapping[str, Any]) -> dict[str, float]:
    """Return the achieved link parameters of one certificate: means over directions."""
    by_name: dict[str, list[float]] = defaultdict(list)
    for row in certificate.get("rows", ()):
        name = _PARAMETERS.get(row["quantity"])
        if name is not None and row.get("achieved") is not None:
            by_name[name].append(row["achieved"])
    return {name: fmean(values) for name, values in by_name.items()}
