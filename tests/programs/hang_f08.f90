! hang_f08: allreduces, then a deadlock, through mpi_f08. Rank 1 waits in MPI_Recv for a message that nobody sends, all others
! wait in MPI_Barrier for rank 1. Ends only when it is killed.
!
! Calls per rank: Init, Comm_rank 1; Allreduce 10; then open for ever: Recv (rank 1), Barrier (others).
program hang_f08
    use mpi_f08
    implicit none
    integer :: rank, total, never, i

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    do i = 1, 10
        call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    end do
    if (rank == 1) then
        call MPI_Recv(never, 1, MPI_INTEGER, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    else
        call MPI_Barrier(MPI_COMM_WORLD)
    end if
    call MPI_Finalize()
end program
