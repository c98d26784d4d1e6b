"""Testing a cluster: what a trial needs of it is tried for real, step by step, and each problem is told with what mends it."""
