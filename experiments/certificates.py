"""What the links of an experiment's trials were measured to be, by the parameters that asked for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from statistics import fmean, median
from typing import Any, Final

from experiments.models import Experiment, Trial

QUANTITIES: Final = {
    "link.bandwidth": "bandwidth",
    "link.delay": "delay",
    "link.jitter": "jitter",
    "link.loss": "loss",
    "link.mtu": "path MTU",
}


def achieved_links(experiment: Experiment) -> dict[int, dict[str, float]]:
    """Return, per configuration, link parameter -> achieved value in its base unit: median over the counted trials. One query."""
    by_configuration: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    trials = Trial.objects.counted().filter(experiment=experiment).exclude(certificate=None)
    for configuration, certificate in trials.values_list("configuration_id", "certificate"):
        for name, value in achieved(certificate).items():
            by_configuration[configuration][name].append(value)
    return {
        configuration: {name: median(values) for name, values in found.items()}
        for configuration, found in by_configuration.items()
    }


def achieved(certificate: Mapping[str, Any]) -> dict[str, float]:
    """Return link parameter -> achieved value of one certificate, the mean over its directions."""
    found: dict[str, list[float]] = defaultdict(list)
    for row in certificate.get("rows", ()):
        name = next((parameter for parameter, quantity in QUANTITIES.items() if quantity == row["quantity"]), None)
        if name is not None and row.get("achieved") is not None:
            found[name].append(row["achieved"])
    return {name: fmean(values) for name, values in found.items()}
