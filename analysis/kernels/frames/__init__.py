"""Kernels for records and frames: framing, link layers, encapsulations, headers."""
