"""Reports: Markdown with pinned parts of experiments, read, written, shared and taken away as one file."""
