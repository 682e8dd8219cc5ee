! causes_f08: rank 1 is in an allreduce while the others are in a barrier, with mpi_f08, in a procedure of a module. Three ranks; ends only
! when it is killed.
!
! Calls per rank: Init, Comm_rank 1; then open for ever: Allreduce (rank 1), Barrier (others).
module solver
  use mpi_f08
  implicit none
contains
  subroutine advance(rank)
    integer, intent(in) :: rank
    integer :: total
    if (rank == 1) call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine advance
end module solver

program causes_f08
  use solver
  implicit none
  integer :: rank
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call advance(rank)
  call MPI_Finalize()
end program causes_f08
