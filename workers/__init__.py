"""Doing it: launchers, the virtual test-bed, capture, sampling, and the pipeline of one trial."""
