"""Replaying the calls of a traced trial on another network, for SimGrid 3.32: time-independent traces, platforms, calibration. Pure."""
