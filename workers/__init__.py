"""Trial execution: launchers, test-bed, capture, sampling and the pipeline."""
