"""Programs with a known cause of slowness, run and judged end to end."""
