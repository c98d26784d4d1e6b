"""Exported tables: configurations, trials, or one row per measurement."""

import os

# Arrow's own pool keeps 15 MB more of what a file was made in, and is no faster with pieces as small as these. Its writers ask for the
# pool that this variable names when the library is loaded.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
