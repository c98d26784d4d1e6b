"""Named networks for what-if predictions, maintained by administrators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from django.db import models, transaction

from analysis.sensitivity import Link

_DEFAULTS: Final = (
    ("1 Gbit/s Ethernet", 30e-6, 1e9),
    ("10 Gbit/s Ethernet", 10e-6, 10e9),
    ("25 Gbit/s Ethernet", 5e-6, 25e9),
    ("100 Gbit/s Ethernet", 2e-6, 100e9),
    ("Metropolitan", 500e-6, 10e9),
    ("Wide area", 10e-3, 1e9),
)
"""(name, one-way delay between two programs in s, rate in bit/s): typical values, for administrators to correct."""


class Network(models.Model):
    """A network as one link between two hosts."""

    name = models.CharField(max_length=40, unique=True)
    delay_s = models.FloatField()
    """One-way delay."""
    rate_bps = models.FloatField()

    class Meta:
        ordering: ClassVar = ["rate_bps", "delay_s", "name"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(delay_s__gte=0, rate_bps__gt=0), name="a_network_has_a_rate_and_no_negative_delay"
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def link(self) -> Link:
        return Link(self.delay_s, self.rate_bps)

    @staticmethod
    def load_defaults() -> None:
        """Store common networks if none is stored."""
        if not Network.objects.exists():
            Network.objects.bulk_create(
                [Network(name=name, delay_s=delay, rate_bps=rate) for name, delay, rate in _DEFAULTS]
            )

    @staticmethod
    def replace_all(networks: Sequence[Network]) -> None:
        """Replace all networks. Raise IntegrityError for equal names."""
        with transaction.atomic():
            Network.objects.all().delete()
            Network.objects.bulk_create(networks)
