program faults
  use mpi_f08
  implicit none
  integer, parameter :: page = 512, pages = 200
  double precision, allocatable :: values(:)
  integer :: round, i
  call MPI_Init()
  do round = 1, 20
    allocate (values(page * pages))
    do i = 1, page * pages, page
      values(i) = round
    end do
    call MPI_Barrier(MPI_COMM_WORLD)
    if (values(1) < 0) stop 1
    deallocate (values)
  end do
  call MPI_Finalize()
end program
