"""docs/workloads.md: its table is whole and its example is accepted."""

from pathlib import Path

from experiments.spec import parse_yaml
from experiments.spec.design import expand, program
from experiments.workloads import registry

TEXT = (Path(__file__).parents[3] / "docs" / "workloads.md").read_text()


def test_it_lists_every_workload():
    assert all(f"| `{workload.slug}` |" in TEXT for workload in registry())


def test_it_writes_its_example_as_a_valid_specification():
    spec = parse_yaml(TEXT.partition("```yaml\n")[2].partition("```")[0])
    third = expand(spec).configurations[2]
    assert program(spec.workload, third.parameters) == ("moldy", "control.tip4p", "--steps=400")
