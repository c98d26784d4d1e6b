program newest
  use mpi_f08
  implicit none
  integer :: rank, values(100), lengths(3) = [0, 3, 90], sent(90) = 1, i
  type(MPI_Request) :: request
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  values = rank
  do i = 1, 3
    call MPI_Irecv(values, 100, MPI_INTEGER, 1 - rank, 2, MPI_COMM_WORLD, request)
    call MPI_Send(sent, lengths(i), MPI_INTEGER, 1 - rank, 2, MPI_COMM_WORLD)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
  end do
  if (command_argument_count() == 0) &
    call MPI_Allreduce(MPI_IN_PLACE, values, 100, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
end program
