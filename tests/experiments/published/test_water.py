"""The water workload: LAMMPS input files and parsed output."""

import shutil
import subprocess
from pathlib import Path

import pytest

from experiments.errors import OutputError
from experiments.workloads.water import WATER, WaterParameters, box_sides

DATA = Path(__file__).parents[2] / "data"


def commands(text: str) -> list[list[str]]:
    """Return LAMMPS input or a molecule file as words, without comments."""
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return [
        [str(float(w)) if w.lstrip("-").replace(".", "", 1).isdigit() else w for w in line] for line in lines if line
    ]


def test_it_writes_the_input_that_is_known_to_run() -> None:
    recorded = (DATA / "lammps-in.water").read_text().replace("${n}", "6").replace("${steps}", "1000")
    files = WATER.files(WaterParameters(molecules=216, steps=1000), ranks=4)
    assert commands(files["in.water"]) == commands(recorded)
    assert commands(files["water.mol"]) == commands((DATA / "lammps-water.mol").read_text())


def test_it_reads_every_number_of_a_recorded_run() -> None:
    parsed = WATER.parse((DATA / "lammps-water-stdout.txt").read_text(), {})
    assert parsed.figures == {
        "water.loop_time_s": 8.62671,
        "water.ns_per_day": 1.002,
        "water.timesteps_per_s": 11.592,
        "water.cpu_use_percent": 4.7,
        "water.pair_s": 0.49333,
        "water.bond_s": 0.00026979,
        "water.kspace_s": 4.7879,
        "water.neigh_s": 0.25685,
        "water.comm_s": 2.3712,
        "water.output_s": 0.0010433,
        "water.modify_s": 0.61646,
        "water.other_s": 0.09962,
    }
    assert set(parsed.figures) == {figure.id for figure in WATER.figures}
    rows = parsed.tables["MPI task timing breakdown"]
    assert rows[2] == {
        "section": "Kspace",
        "min_s": 4.5968,
        "mean_s": 4.7879,
        "max_s": 4.9734,
        "share_percent": 55.5,
    }
    assert rows[-1] == {"section": "Other", "min_s": None, "mean_s": 0.09962, "max_s": None, "share_percent": 1.15}


@pytest.mark.parametrize("end", [0, 200, "Loop time", "Performance:"])
def test_it_refuses_output_that_does_not_reach_the_end(end: int | str) -> None:
    output = (DATA / "lammps-water-stdout.txt").read_text()
    cut = output.index(end) if isinstance(end, str) else end
    with pytest.raises(OutputError, match="did not reach its end"):
        WATER.parse(output[:cut], {})


def test_of_a_log_with_several_runs_the_last_counts_and_a_minimisation_never() -> None:
    output = (DATA / "lammps-water-stdout.txt").read_text()
    begins = output.index("Loop time of")
    before = output[begins:].replace("8.62671", "70.5").replace("1.002 ns", "9.9 ns").replace("4.7879", "33")
    minimised = "Loop time of 0.25 on 4 procs for 50 steps with 1536 atoms\n\n99.0% CPU use with 4 MPI tasks x 1 OpenMP threads\n"
    alone = WATER.parse(output, {})
    for text in (f"{minimised}{before}{output}", f"{output}{minimised}"):
        read = WATER.parse(text, {})
        assert (read.figures, read.tables) == (alone.figures, alone.tables)


def test_a_log_in_units_of_lennard_jones_has_no_nanoseconds() -> None:
    output = (DATA / "lammps-water-stdout.txt").read_text()
    alone = WATER.parse(output, {}).figures
    words = "Performance: 1001.5 tau/day, 11.592 timesteps/s, 17.8 katom-step/s"
    read = WATER.parse(output.replace("Performance: 1.002 ns/day, 23.963 hours/ns, 11.592 timesteps/s", words), {})
    assert read.figures == {name: value for name, value in alone.items() if name != "water.ns_per_day"}


@pytest.mark.parametrize(
    "line",
    ["Loop time of nonsense on 4 procs for 100 steps with 1536 atoms", "Loop time of 1.0 on x procs"],
)
def test_it_refuses_nonsense_in_the_place_of_a_number(line: str) -> None:
    output = (DATA / "lammps-water-stdout.txt").read_text()
    output = output.replace("Loop time of 8.62671 on 4 procs for 100 steps with 1536 atoms", line)
    with pytest.raises(OutputError):
        WATER.parse(output, {})


@pytest.mark.parametrize(
    ("molecules", "sides"), [(64, (4, 4, 4)), (216, (6, 6, 6)), (512, (8, 8, 8)), (300, (5, 6, 10)), (97, (1, 1, 97))]
)
def test_it_fills_a_box_as_near_to_a_cube_as_the_factors_allow(molecules: int, sides: tuple[int, int, int]) -> None:
    assert box_sides(molecules) == sides


@pytest.mark.skipif(shutil.which("lmp") is None, reason="needs the Debian package lammps")
def test_it_really_runs_and_is_read(tmp_path: Path) -> None:
    parameters = WaterParameters(molecules=64, steps=3, temperature=310.5)
    for name, text in WATER.files(parameters, ranks=1).items():
        (tmp_path / name).write_text(text)
    ran = subprocess.run(
        WATER.command(parameters, ranks=1), cwd=tmp_path, capture_output=True, text=True, timeout=150, check=True
    )
    parsed = WATER.parse(ran.stdout, {})
    assert "64 molecules" in ran.stdout or "192 atoms" in ran.stdout
    assert set(parsed.figures) == {figure.id for figure in WATER.figures}
    assert {path.name for path in tmp_path.iterdir()} == {"in.water", "water.mol"}
