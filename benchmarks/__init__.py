"""Measurements of the product against independent truths; see RESULTS.md."""
