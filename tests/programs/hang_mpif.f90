! hang_mpif: the calls of hang_f08 through mpif.h: allreduces, then a deadlock. Rank 1 waits in MPI_Recv for a message that nobody
! sends, all others wait in MPI_Barrier for rank 1. Ends only when it is killed.
!
! Calls per rank: Init, Comm_rank 1; Allreduce 10; then open for ever: Recv (rank 1), Barrier (others).
program hang_mpif
    implicit none
    include 'mpif.h'
    integer :: rank, total, never, i, ierror

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    do i = 1, 10
        call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    end do
    if (rank == 1) then
        call MPI_Recv(never, 1, MPI_INTEGER, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    else
        call MPI_Barrier(MPI_COMM_WORLD, ierror)
    end if
    call MPI_Finalize(ierror)
end program
