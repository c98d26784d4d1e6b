"""This machine and other hosts as trials see them: their processes, their samples, their environment."""
