program old
  implicit none
  include 'mpif.h'
  integer :: error, rank, values(100), request, status(MPI_STATUS_SIZE), lengths(3) = [0, 3, 90], sent(90) = 1, i
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  values = rank
  do i = 1, 3
    call MPI_Irecv(values, 100, MPI_INTEGER, 1 - rank, 2, MPI_COMM_WORLD, request, error)
    call MPI_Send(sent, lengths(i), MPI_INTEGER, 1 - rank, 2, MPI_COMM_WORLD, error)
    call MPI_Wait(request, status, error)
  end do
  if (command_argument_count() == 0) &
    call MPI_Allreduce(MPI_IN_PLACE, values, 100, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  call MPI_Finalize(error)
end program
