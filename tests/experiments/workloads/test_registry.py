"""The registry: every workload keeps the same contract."""

import re

import pytest

from experiments import workloads
from experiments.errors import OutputError

EVERY = workloads.registry()


def test_it_finds_a_workload_as_constants_define_it_and_none_of_an_unknown_name():
    constants = {"program": ["true"], "extract": [{"name": "t_s", "regex": "(.*)", "direction": "lower"}]}
    assert workloads.find("hpl") is workloads.get("hpl")
    workload = workloads.find("command", constants)
    assert workload is not None
    assert workload.decides == "command.t_s"
    assert workloads.find("a-program-of-1999") is None
    with pytest.raises(KeyError):
        workloads.get("a-program-of-1999")


@pytest.mark.parametrize("workload", EVERY, ids=lambda w: w.slug)
def test_it_explains_every_parameter(workload):
    for name, info in workload.parameters_type.model_fields.items():
        assert info.title, name
        assert info.description.endswith("."), name
        assert "unit" in info.json_schema_extra, name


@pytest.mark.parametrize("workload", EVERY, ids=lambda w: w.slug)
def test_it_names_every_figure_with_unit_direction_and_definition(workload):
    assert len({figure.id for figure in workload.figures}) == len(workload.figures)
    for figure in workload.figures:
        assert re.fullmatch(rf"{workload.slug}\.\w+", figure.id)
        assert figure.label
        assert figure.unit
        assert figure.direction in ("lower", "higher", "neutral")
        assert figure.definition.endswith(".")
        assert len(figure.id) <= 80, "the longest identifier that a measurement can have"


@pytest.mark.parametrize("workload", EVERY, ids=lambda w: w.slug)
def test_it_refuses_output_of_another_program(workload):
    definition = {"program": ["true"], "extract": [{"name": "t_s", "regex": "time (.*)"}]}
    with pytest.raises(OutputError):
        workloads.get(workload.slug, definition).parse("Segmentation fault\n", {})


@pytest.mark.parametrize("slug", ["pingpong", "ring", "concurrent-readers", "data-staging", "imb"])
def test_check_refuses_one_rank_of_a_workload_that_needs_two(slug):
    workload = workloads.get(slug)
    with pytest.raises(workloads.Mismatch, match="two hosts"):
        workload.check(workload.parameters_type(), ranks=1)


def test_it_answers_a_missing_program_with_its_package(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert workloads.missing_packages(workloads.get("hpl")) == ("hpcc",)
    assert workloads.missing_packages(workloads.get("netpipe")) == ("netpipe-openmpi",)
    assert "build it from source" in workloads.missing_packages(workloads.get("imb"))[0]


def test_it_answers_a_missing_python_module_with_its_package(monkeypatch, tmp_path):
    monkeypatch.setattr(workloads, "_PYTHON_MODULES", tmp_path)
    assert workloads.missing_packages(workloads.get("pingpong")) == ("python3-mpi4py",)


def test_it_restricts_only_the_command_to_maintainers():
    assert [w.slug for w in EVERY if w.restricted] == ["command"]
