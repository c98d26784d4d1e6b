"""Metrics of the packet table: rates, gaps, flows, TCP, matrices, ports, trust."""
