"""Measurements of the product against truths that do not depend on it; results are in docs/benchmarks.md."""
