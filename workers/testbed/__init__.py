"""Virtual test-bed: hosts, a bridge, shaped links in a rootless process tree."""
