"""Measurements of the product against truths that do not depend on it; benchmarks/RESULTS.md holds the figures."""
