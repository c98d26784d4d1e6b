"""Reports: Markdown with pinned parts of experiments."""
