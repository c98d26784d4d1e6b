"""Recorded outputs of real runs."""

from pathlib import Path

DATA = Path(__file__).parents[2] / "data"


def sample(name):
    return (DATA / name).read_text()
