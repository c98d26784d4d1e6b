"""Cluster check: each requirement of a trial is tried, each failure has a fix."""
