"""Form of the settings of a kind of cluster: one text and its errors a field."""

from __future__ import annotations

import re
import shlex
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from experiments.cluster_kinds.base import ClusterKind
from experiments.cluster_kinds.hosts import host_names
from experiments.errors import FieldError, InvalidSpec

GROUPS: Final = ("Hosts", "Login", "Queue", "MPI", "Network")
"""Headings in their order, for all kinds; others that a kind has follow."""
Shape = Literal["text", "names", "words", "pairs", "check", "choice"]
_ON: Final = "on"
_EMPTY: Final = '""'
"""Notation of an empty text: nothing written means the default."""
_WORDS: Final[Mapping[str, str]] = {
    "auto": "as each program was built",
    "first": "the first host",
    "every": "every host",
    "keep": "as they are",
    "off": "off while trials run",
    "hwthread": "hardware thread, of which a core has one or two",
    "socket": "socket: the cores of one processor",
    "numa": "NUMA node: cores with memory of their own",
    "srun-pmix": "srun of Slurm, over PMIx (--mpi=pmix)",
    "srun-pmi2": "srun of Slurm, over PMI-2 (--mpi=pmi2)",
    "flux-run": "flux run",
    "pals": "mpiexec of HPE PALS",
    "block": "fill one host after another (block)",
    "cyclic": "one rank on each host in turn (cyclic)",
}
"""Choices whose stored word says too little."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One field of the form; ``path`` has a dot for a part's field: ``login.host``."""

    path: str
    title: str
    hint: str
    group: str
    shape: Shape
    usual: str
    """Default, as users write it, or in words."""
    first: bool
    """Required or usually set: the form shows it above the others."""
    choices: tuple[tuple[str, str], ...] = ()


def form_of(kind: ClusterKind) -> list[Setting]:
    """Return the fields of a kind's settings, those of one heading together."""
    settings = [
        replace(setting, hint=f"{setting.hint.rstrip('.')}, such as {example}.")
        if (example := kind.examples.get(setting.path))
        else setting
        for setting in _settings(kind.settings_type)
    ]
    others = [setting.group for setting in settings if setting.group not in GROUPS]
    order = [*GROUPS, *dict.fromkeys(others)]
    return sorted(settings, key=lambda setting: order.index(setting.group))


def settings_from(kind: ClusterKind, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings to store from the texts of a form. Raise InvalidSpec."""
    settings: dict[str, Any] = {}
    errors: list[FieldError] = []
    for setting in form_of(kind):
        text = texts.get(setting.path, "").strip()
        if not text and setting.usual != _ON:  # an unchecked box has no text
            continue
        try:
            value = _READERS[setting.shape](text)
        except ValueError as error:
            errors.append(FieldError(setting.path, str(error)))
            continue
        *parts, name = setting.path.split(".")
        target = settings
        for part in parts:
            target = target.setdefault(part, {})
        target[name] = value
    wrong = {error.path for error in errors}
    more_errors = [*kind.errors_in(settings), *kind.refusals(settings)]
    errors += [error for error in more_errors if error.path not in wrong]
    if errors:
        raise InvalidSpec(errors)
    return kind.settings_type.model_validate(settings).model_dump(mode="json", exclude_unset=True)


def texts_of(kind: ClusterKind, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return stored settings as a form shows them, without those that are not set."""
    texts = {}
    for setting in form_of(kind):
        value: Any = settings
        for part in setting.path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None:
            texts[setting.path] = _written(setting.shape, value)
    return texts


def checked(kind: ClusterKind) -> dict[str, str]:
    """Return the texts of the boxes that are checked by default."""
    return {setting.path: _ON for setting in form_of(kind) if setting.usual == _ON}


def _settings(model: type[BaseModel], prefix: str = "") -> Iterator[Setting]:
    own_first = sorted(model.model_fields, key=lambda name: name not in model.__annotations__)
    for name in own_first:
        info = model.model_fields[name]
        kind = _without_none(info.annotation)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _settings(kind, f"{prefix}{name}.")
            continue
        extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
        shape = _shape(kind, info)
        words = getattr(model, f"{name}_choices", get_args(kind)) if shape == "choice" else ()
        if len(words) == 1:
            continue
        yield Setting(
            path=prefix + name,
            title=info.title or name.replace("_", " ").capitalize(),
            hint=info.description or "",
            group=str(extra.get("group", "Settings")),
            shape=shape,
            usual=str(extra.get("usual") or _usual(shape, info)),
            first=info.is_required() or bool(extra.get("first")),
            choices=tuple((word, _WORDS.get(word, word)) for word in words),
        )


def _usual(shape: Shape, info: FieldInfo) -> str:
    return "" if info.is_required() or info.default is None else _written(shape, info.default)


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        return next(member for member in get_args(annotation) if member is not type(None))
    return annotation


def _shape(kind: Any, info: FieldInfo) -> Shape:
    if kind is bool:
        return "check"
    if get_origin(kind) is Literal:
        return "choice"
    if get_origin(kind) is dict:
        return "pairs"
    if get_origin(kind) is tuple:
        return "names" if info.is_required() else "words"
    return "text"


def _pairs(text: str) -> dict[str, str]:
    pairs = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, value = line.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(f"{line[:80]!r} is not NAME=value")
        pairs[name] = value
    return pairs


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        raise ValueError("has a quotation mark without its other") from None


_READERS: Final[Mapping[Shape, Callable[[str], Any]]] = {
    "text": lambda text: "" if text == _EMPTY else text,
    "choice": str,
    "check": lambda text: text in (_ON, "true", "1"),
    "names": host_names,
    "words": _split,
    "pairs": _pairs,
}


def _written(shape: Shape, value: Any) -> str:
    if shape == "check":
        return _ON if value else ""
    if shape == "names" and isinstance(value, Sequence) and not isinstance(value, str):
        return "\n".join(map(str, value))
    if shape == "words" and isinstance(value, Sequence) and not isinstance(value, str):
        return shlex.join(map(str, value))
    if shape == "pairs" and isinstance(value, Mapping):
        return "\n".join(f"{name}={text}" for name, text in value.items())
    return str(int(value) if isinstance(value, float) and value.is_integer() else value) or _EMPTY
