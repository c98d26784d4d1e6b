"""One trial from claim to measurements: pipeline, measuring, results, heartbeat, failures."""
