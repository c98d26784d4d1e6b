"""Observations: numbers with intervals, and analyses of single kinds of experiments. Pure."""
