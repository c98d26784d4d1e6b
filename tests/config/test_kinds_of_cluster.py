"""Code asks the traits of a kind of cluster, never its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.services.lease import ROOT
from experiments import cluster_kinds
from tests.config.kind_names import named_in_python, named_in_template

KINDS = {kind.name for kind in cluster_kinds.registry()}
TITLES = {kind.title for kind in cluster_kinds.registry()}
OWN_ROOM = ROOT / "experiments" / "cluster_kinds"
LAUNCHERS = ROOT / "workers" / "launchers"
ALLOWED = {
    "experiments/specification/fields.py": {"testbed"},  # the cluster of a specification that names none; its slug
    "experiments/exchange/external_results.py": {"ssh"},  # the kind of a cluster of other installations: real hosts
    "workers/cluster_check/launcher.py": {"flux"},  # a program
    "workers/hosts/counters/board.py": {"slurm"},  # the accounting of a step, in any job of Slurm
    "workers/trial/counters.py": {"slurm"},  # the key of that source
    "workers/launchers/direct.py": {"flux"},  # a program
    "workers/launchers/schedulers/launcher.py": {"ssh"},  # a program
    "workers/launchers/mpi.py": {"ssh"},  # a word that Hydra's mpiexec takes
    "workers/launchers/openmpi.py": {"ssh"},  # a word in parameters of Open MPI 5
}


def knows_kinds(path: Path) -> bool:
    """Return True for a module of a kind: in their package, or a launcher."""
    return OWN_ROOM in path.parents or (path.parent == LAUNCHERS and path.stem in KINDS)


def test_it_knows_a_kind_by_name_in_its_two_modules_only() -> None:
    rooms = ("analysis", "experiments", "workers", "dashboard", "config")
    modules = [path for room in rooms for path in (ROOT / room).rglob("*.py") if "migrations" not in path.parts]
    assert any(knows_kinds(path) for path in modules)
    named = {
        str(path.relative_to(ROOT)): kinds
        for path in modules
        if not knows_kinds(path) and (kinds := named_in_python(path.read_text(), KINDS, TITLES))
    }
    assert named == ALLOWED, "ask cluster.traits instead (experiments.cluster_kinds)"


def test_it_knows_a_kind_by_name_in_no_template() -> None:
    templates = [*(ROOT / "templates").rglob("*.html"), *(ROOT / "dashboard").rglob("*.html")]
    assert templates
    assert {path.name: kinds for path in templates if (kinds := named_in_template(path.read_text(), KINDS))} == {}


@pytest.mark.parametrize(
    "branch",
    [
        'if cluster.kind == "slurm": pass',
        'SHARED = ("testbed", "local")',
        'shown = cluster.get_kind_display() == "Slurm"',
        "from experiments.cluster_kinds.slurm import Slurm",
        "from experiments.cluster_kinds import Slurm",
        "import experiments.cluster_kinds.ssh",
        "match cluster.kind:\n    case 'ssh': pass",
    ],
)
def test_it_finds_a_branch_on_a_name(branch: str) -> None:
    assert named_in_python(branch, KINDS, TITLES)


def test_it_finds_a_branch_in_a_template() -> None:
    assert named_in_template('{% if cluster.kind == "slurm" %}x{% endif %}', KINDS) == {"slurm"}
    assert not named_in_template('<a class="ssh">Slurm</a>', KINDS)
