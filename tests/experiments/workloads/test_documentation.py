"""docs/workloads.md: its table is whole and its example is accepted."""

from pathlib import Path

import yaml

from experiments import workloads
from experiments.spec import parse_yaml
from experiments.spec.design import expand, program
from experiments.workloads import registry
from experiments.workloads.program import Program, ProgramDefinition

TEXT = (Path(__file__).parents[3] / "docs" / "workloads.md").read_text()


def test_it_lists_every_workload():
    assert all(f"| `{workload.slug}` |" in TEXT for workload in registry())


def test_it_writes_its_example_as_a_valid_specification():
    spec = parse_yaml(TEXT.partition("## Any command")[2].partition("```yaml\n")[2].partition("```")[0])
    third = expand(spec).configurations[2]
    assert program(spec.workload, third.parameters) == ("moldy", "control.tip4p", "--steps=400")


def blocks(mark):
    return [part.partition("```yaml\n")[2].partition("```")[0] for part in TEXT.split(f"<!-- {mark} -->")[1:]]


def test_it_writes_programs_that_can_be_registered_and_a_sweep_of_the_first(monkeypatch):
    heat, ocean = (ProgramDefinition.model_validate(yaml.safe_load(text)) for text in blocks("program"))
    monkeypatch.setattr(workloads, "_SOURCES", [lambda: {"heat": Program({1: heat}), "ocean": Program({1: ocean})}])
    spec = parse_yaml(blocks("sweep")[0])
    assert program("heat", expand(spec).configurations[1].parameters) == ("/home/ada/heat/heat", "400")
    wrapped = workloads.get("ocean").on("slurm-lab").command(workloads.get("ocean").parameters_type(), ranks=6)
    assert wrapped[:3] == ("/bin/bash", "-lc", 'export OCEAN_DATA=/scratch/ocean; module load openmpi/4.1 && exec "$@"')
    assert "exec /opt/ocean/bin/ocean deck.nml" in wrapped[-1]
