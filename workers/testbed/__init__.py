"""The virtual test-bed: n hosts, one bridge, shaped links, in one rootless process tree that leaves nothing behind."""
