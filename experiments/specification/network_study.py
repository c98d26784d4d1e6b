"""``study: network``: short form of a sweep for a program's network needs.

It expands to a sweep over delay, bandwidth and loss that advance together along the links that ``analysis.sensitivity`` proposes:

    study: network                    # or, with a range of one's own:
    study: {kind: network, delay: 2 ms, bandwidth: 50 Mbit/s, loss: [1 %]}

Stored specifications hold the sweep itself, so that a later proposal changes no earlier experiment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pydantic import Field, ValidationError, field_validator

from analysis import sensitivity
from experiments.common.quantities import BANDWIDTH, DURATION, FRACTION
from experiments.errors import FieldError, InvalidSpec
from experiments.specification.parameters import Bandwidth, Delay, Link, Loss, Part, refusal

KIND: Final = "network"
_SWEPT: Final = ("link.delay", "link.bandwidth", "link.loss")
_P = TypeVar("_P", bound=Part)


class NetworkStudy(Part):
    """Range of the links from the one under ``link``; omitted ends are proposed."""

    kind: str
    delay: Delay | None = Field(None, gt=0)
    bandwidth: Bandwidth | None = None
    loss: tuple[Loss, ...] = ()

    @field_validator("kind")
    @classmethod
    def _refuse_other_kinds(cls, value: str) -> str:
        if value != KIND:
            raise ValueError(f"must be {KIND}: what the program needs from its network")
        return value


def expanded(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the specification with the sweep of its study. Raise InvalidSpec."""
    rest = {name: value for name, value in data.items() if name != "study"}
    if data.get("study") is None:
        return rest
    written = data["study"]
    study = _read("study", NetworkStudy, written if isinstance(written, Mapping) else {"kind": written})
    link = _read("link", Link, rest.get("link") or {})
    links = _links(study, link)
    lossy = any(point.loss != link.loss for point in links)
    sweep = rest.get("sweep") or {}
    if not isinstance(sweep, Mapping):
        return rest  # is refused as what it is
    for name in _SWEPT[: 2 + lossy]:
        if name in sweep:
            raise InvalidSpec(
                [FieldError(f"sweep.{name}", "is chosen by the study of the network; leave one of both out")]
            )
    added = {
        "link.delay": [DURATION.format(point.delay_s) for point in links],
        "link.bandwidth": [BANDWIDTH.format(point.rate_bps) for point in links],
        "link.loss": [FRACTION.format(point.loss) for point in links],
    }
    together = list(_SWEPT[: 2 + lossy])
    return {
        **rest,
        "sweep": {**{name: added[name] for name in together}, **sweep},
        "zip": [together, *(rest.get("zip") or ())],
    }


def _links(study: NetworkStudy, link: Link) -> tuple[sensitivity.Link, ...]:
    if link.bandwidth is None:
        raise InvalidSpec([FieldError("link.bandwidth", "a study of the network starts from a bandwidth; give one")])
    here = sensitivity.Link(link.delay, link.bandwidth, link.loss)
    proposed = sensitivity.Range.around(here)
    to = sensitivity.Range(study.delay or proposed.most_delay_s, study.bandwidth or proposed.least_rate_bps)
    if to.most_delay_s <= here.delay_s:
        raise InvalidSpec([FieldError("study.delay", "must be more than the delay under link")])
    if to.least_rate_bps >= here.rate_bps:
        raise InvalidSpec([FieldError("study.bandwidth", "must be less than the bandwidth under link")])
    return sensitivity.propose(here, to, losses=study.loss)


def _read(path: str, model: type[_P], value: Any) -> _P:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise refusal(error, path) from None
