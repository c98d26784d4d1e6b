"""Commands that let users read counters. Standard library only: agents import it."""

OPEN_RAPL = "sudo chmod o+r /sys/class/powercap/intel-rapl:*/energy_uj"
RAPL_GUIDE = "let-users-read-rapl"
"""Name of a how-to."""
