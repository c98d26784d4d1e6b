"""Exported tables: configurations, trials, or one row per measurement."""

import os

# Arrow's default pool retains 15 MB more and is no faster for small pieces. The variable is read when
# the library is loaded.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
