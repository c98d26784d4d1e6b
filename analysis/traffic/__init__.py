"""From the packet table to metrics: rates, gaps, flows, TCP, matrices, ports, and how far they may be believed."""
