program old
  implicit none
  include 'mpif.h'
  integer :: error, rank, values(100), request, status(MPI_STATUS_SIZE)
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  values = rank
  call MPI_Irecv(values, 100, MPI_INTEGER, 1 - rank, 2, MPI_COMM_WORLD, request, error)
  call MPI_Send([1, 2, 3], 3, MPI_INTEGER, 1 - rank, 2, MPI_COMM_WORLD, error)
  call MPI_Wait(request, status, error)
  call MPI_Allreduce(MPI_IN_PLACE, values, 100, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  call MPI_Finalize(error)
end program
