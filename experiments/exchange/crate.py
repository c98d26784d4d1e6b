"""RO-Crate description of a bundle, readable without Rankwire.

RO-Crate 1.3 (https://w3id.org/ro/crate/1.3) with the profile Process Run Crate 0.5 of Workflow Run Crate: each trial is an action with
the program as its instrument, the specification as its object and its files as results.
"""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rocrate.rocrate import ROCrate

METADATA: Final = "ro-crate-metadata.json"
PROFILE: Final = "https://w3id.org/ro/wfrun/process/0.5"
_STATUS: Final = {"finished": "http://schema.org/CompletedActionStatus"}
_FAILED: Final = "http://schema.org/FailedActionStatus"
_TYPES: Final = {".zst": "application/zstd", ".yaml": "application/yaml", ".pcapng": "application/x-pcapng"}


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that was written to a bundle."""

    name: str
    size_bytes: int
    sha256: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """A trial as an action."""

    uid: str
    name: str
    state: str
    started: str | None
    ended: str | None
    specification: str
    results: Sequence[str]
    error: str = ""


@dataclass(slots=True)
class Description:
    """Description of a bundle as a whole and of each of its experiments."""

    title: str
    about: str
    licence: str
    citation: str
    by: str
    when: str
    software: str
    experiments: list[Mapping[str, Any]] = field(default_factory=list)
    """``directory``, ``name``, ``uid``, ``workload``, ``repeat`` (a command) of each."""


def metadata(description: Description, files: Sequence[WrittenFile], runs: Sequence[Run]) -> bytes:
    """Return ``ro-crate-metadata.json``."""
    # Imported here: only bundle writers need them.
    from rocrate.model import ContextEntity
    from rocrate.rocrate import ROCrate

    crate = ROCrate(version="1.3")
    root = crate.root_dataset
    crate.name, crate.description, crate.license = description.title, description.about, description.licence
    crate.datePublished = description.when
    root["creditText"] = description.citation
    root["conformsTo"] = crate.add(
        ContextEntity(crate, PROFILE, {"@type": "CreativeWork", "name": "Process Run Crate"})
    )
    if description.by:
        root["author"] = crate.add(ContextEntity(crate, "#author", {"@type": "Person", "name": description.by}))
    entities = {item.name: _file(crate, item) for item in files}
    programs: dict[str, Any] = {}
    for item in description.experiments:
        programs[item["workload"]] = crate.add(
            ContextEntity(
                crate, f"#program-{item['workload']}", {"@type": "SoftwareApplication", "name": item["workload"]}
            )
        )
        dataset = crate.add_dataset(
            dest_path=item["directory"],
            properties={
                "name": item["name"],
                "identifier": f"urn:uuid:{item['uid']}",
                "usageInfo": f"To repeat it: {item['repeat']}",
            },
        )
        dataset["hasPart"] = [file for name, file in entities.items() if name.startswith(f"{item['directory']}/")]
    workloads = {item["directory"]: item["workload"] for item in description.experiments}
    for run in runs:
        _action(crate, run, entities, programs[workloads[run.specification.rpartition("/")[0]]])
    root["mentions"] = [{"@id": f"#{run.uid}"} for run in runs]
    return json.dumps(crate.metadata.generate(), indent=1).encode()


def _file(crate: ROCrate, written: WrittenFile) -> Any:
    suffix = "." + written.name.rpartition(".")[2]
    kind = _TYPES.get(suffix) or mimetypes.guess_type(written.name)[0] or "application/octet-stream"
    properties = {"sha256": written.sha256, "contentSize": str(written.size_bytes), "encodingFormat": kind}
    about = {"description": written.about} if written.about else {}
    return crate.add_file(dest_path=written.name, properties=properties | about)


def _action(crate: ROCrate, run: Run, entities: Mapping[str, Any], program: Any) -> None:
    times = {"startTime": run.started, "endTime": run.ended, "error": run.error}
    properties = {"name": run.name, "actionStatus": {"@id": _STATUS.get(run.state, _FAILED)}}
    properties |= {name: value for name, value in times.items() if value}
    crate.add_action(
        program,
        identifier=f"#{run.uid}",
        object=[entities[run.specification]],
        result=[entities[name] for name in run.results],
        properties=properties,
    )
