"""Cluster check: each requirement of a trial is tried on the cluster, each problem has a suggested fix."""
