"""Kernels that walk through the records of a file and the layers of a frame: framing, link layers, what is wrapped around IP."""
