"""Forms of the answers of an agent on another machine, which may be hostile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError, create_model
from pydantic import model_validator as checks

from experiments.common import storable
from workers.errors import ClusterUnavailable

MOST_FACTS_BYTES: Final = 4 << 20
"""Of what all hosts of a trial report about themselves: every trial stores it."""
_LARGEST: Final = 2**62
"""Differences of two such numbers fit into 64 bits."""


Number = Annotated[float, Field(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False)]
Integer = Annotated[int, Field(ge=-_LARGEST, le=_LARGEST)]
_Count = Annotated[int, Field(ge=0, le=_LARGEST)]
_Line = Annotated[str, Field(max_length=10_000)]
_Name = Annotated[str, Field(min_length=1, max_length=255)]
_Variable = Annotated[str, Field(max_length=1 << 17)]
"""As Linux allows it."""
_Lines = Annotated[list[_Line], Field(max_length=10_000)]
_Texts = Annotated[dict[_Line, _Line], Field(max_length=10_000)]
_Cpu = Annotated[int, Field(ge=0, lt=1 << 17)]
_Cpus = Annotated[list[_Cpu], Field(max_length=1 << 17)]
_Core = Annotated[tuple[_Cpu, _Cpu, _Cpus], Strict(False)]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Processor(_Form):
    model: _Line
    cores: _Cpu
    hardware_threads: _Cpu = 0
    governor: _Line | None


class _Machine(_Form):
    sockets: _Cpu = 0
    numa_nodes: _Cpu = 0
    numa_balancing: _Line = ""
    smt: _Line = ""
    microcode: _Lines = []
    mitigations: _Texts
    huge_pages: dict[_Line, _Line | Integer]
    firmware: _Texts


class _Script(_Form):
    path: _Line
    sha256: _Line | None
    git_commit: _Line | None


class _Program(_Form):
    path: _Line
    sha256: _Line | None
    package: _Line | None
    libraries: _Lines
    git_commit: _Line | None
    script: _Script | None = None


class _Facts(_Form):
    """Answer of `workers.agent.machine.facts`."""

    kernel: _Line
    architecture: _Line
    distribution: _Line
    cpu: _Processor
    machine: _Machine
    memory_bytes: _Count
    mpi: _Line | None
    mpi_parameters: _Lines
    program: _Program | None


class _End(_Form):
    """End of a program, which takes some time."""

    ended: _Count
    status: Annotated[int, Field(ge=-255, le=255)]
    started_ns: _Count
    ended_ns: _Count

    @checks(mode="after")
    def _takes_time(self) -> Self:
        if self.ended_ns <= self.started_ns:
            raise ValueError("it ends before it starts")
        return self


def _form(**fields: Any) -> type[_Form]:
    definitions: Any = {name: (kind, ...) for name, kind in fields.items()}
    form: type[_Form] = create_model("_Answer", __base__=_Form, **definitions)
    return form


ENDED: Final = "ended"
ERROR: Final = "error"
_FORMS: Final[Mapping[str, type[BaseModel]]] = {
    ENDED: _End,
    ERROR: _form(error=_Line, errno=_Cpu | None),
    "hello": _form(host=_Name, root=bool, variables=dict[_Variable, _Variable], python=_Name),
    "spawn": _form(pid=_Count, started_ns=_Count),
    "read": _form(size=Annotated[int, Field(ge=0, le=1 << 43)]),
    "find": _form(found=_Line | None, there=bool),
    "mpi": _form(loaded=_Lines),
    "machine": _form(facts=_Facts),
    "processors": _form(cores=Annotated[list[_Core], Field(max_length=1 << 17)], allowed=_Cpus),
    "clock": _form(time_s=Number),
    "frames": _form(frames=_Count),
    "offloads": _form(refusal=_Line | None, off=_Lines),
    "sweep": _form(killed=_Count, left=_Count),
    **dict.fromkeys(("signal", "stop", "count", "watch", "write", "clear"), _form()),
}
"""By request. Files, samples and reports of counters have forms where they are used."""


def checked(request: str, answer: Mapping[str, Any], host: str) -> dict[str, Any]:
    """Return the fields of an answer. Raises ClusterUnavailable."""
    fields = {name: value for name, value in answer.items() if name != "answers"}
    if (form := _FORMS.get(request)) is None:
        return fields
    try:
        return form.model_validate(storable.storable(fields)).model_dump(exclude_unset=True)
    except RecursionError:
        raise ClusterUnavailable(f"{host} sends no answer to “{request}”: nested too deeply.") from None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part)[:40] for part in first["loc"])
        raise ClusterUnavailable(f"{host} sends no answer to “{request}”: {field}: {first['msg'][:200]}.") from None
