"""The virtual test-bed: n hosts, one bridge, shaped links, in one rootless process tree that leaves nothing behind.

`probe()` says whether it can run here; `workers.launchers` opens it.
"""

from workers.testbed.probe import probe

__all__ = ["probe"]
