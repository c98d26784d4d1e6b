"""One trial from claim to measurements: the pipeline, its measuring and its concluding part, its heartbeat, its failures."""
