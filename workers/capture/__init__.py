"""Packet recording while a trial runs: dumpcap, the test-bed's ring, other hosts."""
