#!/usr/bin/python3
"""Heat flow along a rod that the ranks share; the argument is its grid points."""

import sys
import time

from mpi4py import MPI

STEPS = 100

world = MPI.COMM_WORLD
points = int(sys.argv[1]) // world.size
left = world.rank - 1 if world.rank else MPI.PROC_NULL
right = world.rank + 1 if world.rank + 1 < world.size else MPI.PROC_NULL
rod = [1.0 if world.rank == 0 else 0.0] * points

begun_at = time.perf_counter()
for _ in range(STEPS):
    from_right = world.sendrecv(rod[0], dest=left, source=right)
    from_left = world.sendrecv(rod[-1], dest=right, source=left)
    before = [rod[0] if from_left is None else from_left, *rod[:-1]]
    after = [*rod[1:], rod[-1] if from_right is None else from_right]
    rod = [here + (one - 2 * here + other) / 4 for one, here, other in zip(before, rod, after, strict=True)]
elapsed_s = time.perf_counter() - begun_at

heat = world.reduce(sum(rod))
if world.rank == 0:
    print(f"Total time: {elapsed_s:.4f} s")
    print(f"Lost heat = {abs(heat - points) / points:.1e}")
    print("Finished")
