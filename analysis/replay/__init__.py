"""Replay of a traced trial's calls on another network, by SimGrid 3.32. Pure."""
