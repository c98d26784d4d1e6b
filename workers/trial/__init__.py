"""One trial from claim to measurements: measuring, results, failures."""
