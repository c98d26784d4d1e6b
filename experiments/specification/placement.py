"""Placement of ranks: what each is bound to, and their order over the hosts. Pure."""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

Bind = Literal["default", "core", "socket", "numa", "hwthread", "none"]
Distribution = Literal["block", "cyclic"]
WantedBind = Literal["cluster", "default", "core", "socket", "numa", "hwthread", "none"]
WantedDistribution = Literal["cluster", "block", "cyclic"]
DEFAULTS: Final = {"bind": "default", "distribution": "block"}
UNBOUND: Final = ("default", "none")
_CHOICES: Final = {"bind": get_args(Bind), "distribution": get_args(Distribution)}


def as_choice(name: str, value: Any) -> str:
    """Return a value of ``bind`` or ``distribution``. Raise ValueError."""
    if value not in _CHOICES[name]:
        raise ValueError(f"{value!r} is not one of {', '.join(_CHOICES[name])}")
    return str(value)
