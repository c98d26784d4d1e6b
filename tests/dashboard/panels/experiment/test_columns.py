"""Cells of the table of configurations."""

from __future__ import annotations

from dashboard.panels.experiment.tables import Column
from experiments.selectors import ConfigurationRow


def test_cells_state_the_median_and_the_ends_of_its_values() -> None:
    skewed, single, nothing = (
        ConfigurationRow(number, "", 2, 4, {}, values={"elapsed_s": values})
        for number, values in enumerate(([0.0012, 0.0039, 0.0318], [0.0039], []))
    )
    column = Column.of("elapsed_s", [skewed, single, nothing])
    assert column.unit == "ms"
    assert column.cell(skewed) == ("3.9", "1.2 to 31.8")
    assert column.cell(single) == ("3.9", "")
    assert column.cell(nothing) == ("–", "")


def test_an_empty_cell_states_that_its_captures_are_flagged() -> None:
    row = ConfigurationRow(1, "", 2, 4, {}, flagged={"packets": [1000.0]})
    assert Column.of("packets", [row]).cell(row) == ("–", "flagged")
