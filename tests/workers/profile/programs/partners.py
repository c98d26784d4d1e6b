from mpi4py import MPI

world = MPI.COMM_WORLD
rank, data = world.rank, bytearray(8)
half = world.Split(rank % 2, -rank)
twin = half.Dup()
alone = world.Split(rank if rank == 0 else MPI.UNDEFINED)
if rank < 2:
    for comm in (half, twin, half, half):
        comm.Send(data, 0)
    half.send("text", 0)
else:
    half.Recv(data)
    twin.Irecv(data).Wait()
    MPI.Request.Waitall([half.Irecv(data), half.Irecv(data)])
    half.recv()
world.Sendrecv(data, (rank + 1) % 4, recvbuf=data, source=(rank - 1) % 4)
world.Sendrecv_replace(data, (rank + 1) % 4)
world.Sendrecv(data, MPI.PROC_NULL, recvbuf=data, source=MPI.PROC_NULL)
half.Barrier()
twin.Allreduce(bytearray(8), data)
twin.Free()
again = half.Dup()
again.Barrier()
