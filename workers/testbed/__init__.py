"""Virtual test-bed: n hosts, one bridge, shaped links, in one rootless process tree."""
