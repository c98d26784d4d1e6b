"""Programs whose cause of slowness is known by construction, run and judged end to end."""
