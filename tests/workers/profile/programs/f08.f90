program newest
  use mpi_f08
  implicit none
  integer :: rank, values(100)
  type(MPI_Request) :: request
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  values = rank
  call MPI_Irecv(values, 100, MPI_INTEGER, 1 - rank, 2, MPI_COMM_WORLD, request)
  call MPI_Send([1, 2, 3], 3, MPI_INTEGER, 1 - rank, 2, MPI_COMM_WORLD)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call MPI_Allreduce(MPI_IN_PLACE, values, 100, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
end program
