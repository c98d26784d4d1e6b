"""Observations: numbers with intervals, by kind of experiment. Pure."""
