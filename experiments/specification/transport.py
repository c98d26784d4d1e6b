"""Transport of MPI messages: the library's own choice, TCP, or a site's own. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

AS_CLUSTER: Final[Literal["cluster"]] = "cluster"
"""The specification leaves the transport to the cluster's settings."""
NATIVE: Final = "native"
TCP: Final = "tcp"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST: Final = 200
_COMPONENTS: Final = "[A-Za-z0-9_^][A-Za-z0-9_.,:^~-]*"
_HARMLESS: Final = re.compile(
    rf"((UCX_(TLS|NET_DEVICES)|FI_PROVIDER|I_MPI_(FABRICS|OFI_PROVIDER)|MPIR_CVAR_CH4_NETMOD|PSM2_DEVICES)={_COMPONENTS}( |$))*"
    rf"(--mca (pml|btl|mtl|osc) {_COMPONENTS}( |$))*"
)
"""Words that name components of a library, in an allow list: others name files that ranks load, or programs to start."""
_EXAMPLE: Final = "native, tcp, or one with a name, as in ucx: UCX_TLS=rc,self --mca pml ucx"


@dataclass(frozen=True, slots=True)
class Transport:
    """A transport by name; its variables and launch arguments if it is a site's own."""

    name: str
    environment: Mapping[str, str]
    arguments: tuple[str, ...] = ()


class _Own(BaseModel):
    """A site's own transport as a mapping: its JSON schema."""

    model_config = ConfigDict(extra="forbid")

    name: str
    environment: dict[str, str] = {}
    arguments: list[str] = []


def as_transport(value: Any) -> str:
    """Return a transport in its one spelling. Raise ValueError.

    The spelling of a site's own: `NAME: VARIABLE=value ... ARGUMENT ...`.
    """
    text = _from_mapping(value) if isinstance(value, Mapping) else value
    if not isinstance(text, str):
        raise ValueError(f"{value!r} is not a transport; write {_EXAMPLE}")
    name, colon, rest = text.strip().partition(":")
    words = rest.split()
    if not colon and name in (NATIVE, TCP):
        return name
    if not colon or not words or not text.isprintable() or _NAME.fullmatch(name) is None:
        raise ValueError(f"{text[:80]!r} is not a transport; write {_EXAMPLE}")
    if name in (NATIVE, TCP, AS_CLUSTER):
        raise ValueError(f"{name!r} cannot be the name of a transport of your own")
    if len(written := f"{name}: {' '.join(words)}") > _LONGEST:
        raise ValueError(f"is longer than {_LONGEST} characters")
    return written


def transport_of(text: str) -> Transport:
    """Return the parts of a transport in its one spelling."""
    name, _, rest = text.partition(": ")
    words = rest.split()
    count = next((n for n, word in enumerate(words) if not _is_setting(word)), len(words))
    variables = dict(word.split("=", 1) for word in words[:count])
    return Transport(name, variables, tuple(words[count:]))


def is_harmless(value: Any) -> bool:
    """Return whether a valid transport only names components of installed libraries."""
    return _HARMLESS.fullmatch(_or_cluster(value).partition(": ")[2]) is not None


def as_swept(written: Any) -> Any:
    """Return swept transports as texts; a site's own ends at a comma and a space."""
    if isinstance(written, list):
        return [as_transport(item) if isinstance(item, Mapping) else item for item in written]
    if not isinstance(written, str):
        return written
    items = re.split(r",\s+", written)
    return [part for item in items for part in ([item] if ":" in item else item.split(","))]


def _or_cluster(value: Any) -> str:
    return AS_CLUSTER if value in (AS_CLUSTER, None, "") else as_transport(value)


def _is_setting(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and _VARIABLE.fullmatch(name) is not None


def _from_mapping(value: Mapping[str, Any]) -> str:
    unknown = sorted(map(str, value.keys() - {"name", "environment", "arguments"}))
    variables, arguments = value.get("environment") or {}, value.get("arguments") or []
    if unknown or not isinstance(variables, Mapping) or not isinstance(arguments, list):
        raise ValueError("a transport of your own has name, environment (a mapping) and arguments (a list)")
    words = [*(f"{name}={text}" for name, text in variables.items()), *map(str, arguments)]
    for word in words:
        if not word or re.search(r"\s", word):
            raise ValueError(f"{word!r} is empty or has a space: no word of a transport may have one")
    if wrong := next((word for word in words[: len(variables)] if not _is_setting(word)), None):
        raise ValueError(f"{wrong!r} is not a variable with its value")
    if arguments and _is_setting(words[len(variables)]):
        raise ValueError(f"{arguments[0]!r} begins the arguments but reads as a variable")
    return f"{value.get('name', '')}: {' '.join(words)}"


_WRITTEN: Any = str | _Own
TransportText = Annotated[str, BeforeValidator(as_transport, json_schema_input_type=_WRITTEN)]
"""A transport, as the settings of a cluster have it."""
TransportOrCluster = Annotated[str, BeforeValidator(_or_cluster, json_schema_input_type=_WRITTEN)]
"""A transport, or `cluster`: that of the cluster's settings."""
