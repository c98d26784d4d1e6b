import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
if rank == 0:
    print(MPI.Get_library_version())
for length in (0, 10, 5000, 90000):
    world.send(b"x" * length, (rank + 1) % size, 1) if rank % 2 else None
    world.recv(source=(rank - 1) % size, tag=1) if rank % 2 == 0 else None
    buffer = bytearray(length)
    world.Sendrecv(b"y" * length, (rank + 1) % size, 2, buffer, (rank - 1) % size, 2)
if not sys.argv[1:]:
    world.allreduce(rank)
