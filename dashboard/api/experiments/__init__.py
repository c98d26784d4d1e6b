"""``/api/v1/experiments/`` and ``published/``."""
