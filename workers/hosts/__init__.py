"""Hosts as trials see them: their processes, samples and environment."""
