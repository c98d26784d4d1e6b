"""``/api/v1/experiments/`` and ``published/``: the rows, what an experiment shows, and its full result."""
