"""Documents of workloads: the table is complete, and the examples are accepted."""

from pathlib import Path

import yaml

from experiments import workloads
from experiments.specification import parse_yaml
from experiments.specification.design import expand
from experiments.specification.launch_plan import plan_launch
from experiments.workloads import plugins, registry
from experiments.workloads.command import programs_from
from experiments.workloads.definition import ProgramDefinition
from tests.browser.journeys.guide import blocks

DOCS = Path(__file__).parents[3] / "docs"
FILES = {
    block.file: block.text
    for page in ("tutorial/your-program.md", "reference/programs.md")
    for block in blocks(DOCS / page)
}


def test_it_lists_every_workload():
    table = (DOCS / "reference/workloads.md").read_text()
    assert all(f"| `{workload.slug}` |" in table for workload in registry())


def test_it_writes_its_example_as_a_valid_specification():
    example = next(block for block in blocks(DOCS / "reference/command.md") if block.language == "yaml")
    spec = parse_yaml(example.text)
    third = expand(spec).configurations[2]
    assert plan_launch(spec.workload, third.parameters).program == ("moldy", "control.tip4p", "--steps=400")


def test_it_writes_programs_that_can_be_registered_and_a_sweep_of_the_first(monkeypatch):
    texts = (FILES["heat.yaml"], FILES["ocean.yaml"])
    programs = programs_from((1, ProgramDefinition.model_validate(yaml.safe_load(text))) for text in texts)
    monkeypatch.setattr(workloads, "_SOURCES", [lambda: programs])
    spec = parse_yaml(FILES["first.yaml"])
    assert plan_launch("heat", expand(spec).configurations[1].parameters).program == ("/opt/heat/heat", "20000")
    wrapped = workloads.get("ocean", cluster="slurm-lab").command(workloads.get("ocean").parameters_type(), ranks=6)
    assert wrapped[:3] == ("/bin/bash", "-lc", 'export OCEAN_DATA=/scratch/ocean; module load openmpi/4.1 && exec "$@"')
    assert "exec /opt/ocean/bin/ocean deck.nml" in wrapped[-1]


def test_it_writes_a_module_that_is_a_workload(tmp_path):
    (tmp_path / "solver.py").write_text(FILES["solver.py"])
    solver = plugins.load(tmp_path, workloads.built_in())["solver"]
    assert solver.command(solver.parameters_type(steps=5), ranks=2) == ("solver", "--steps=5")
    assert solver.parse("time 2.5\n", {}).figures == {"solver.time_s": 2.5}
