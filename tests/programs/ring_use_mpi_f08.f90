! ring_use_mpi_f08 [iterations]: messages round a ring, through the `use mpi_f08` interface (mpi_send_f08_ or mpi_send_f08ts_,
! handles are types, ierror is optional and left out).
!
! Calls per rank for N iterations (default 20): Init, Comm_rank, Comm_size, Comm_set_name (a hidden string length), Bcast,
! Finalize 1; Send, Recv, Isend, Irecv, Waitall, Sendrecv, Allreduce N; Barrier in every tenth. Gates: 1 after MPI_Init, 3
! before MPI_Finalize.
program ring_use_mpi_f08
    use mpi_f08
    implicit none
    external :: gate
    integer, parameter :: large = 16384, medium = 1024
    integer :: rank, ranks, left, right, iterations, iteration, token, total
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: statuses(2), status
    integer, asynchronous :: output(large), input(large)
    character(len=16) :: argument

    iterations = 20
    if (command_argument_count() > 0) then
        call get_command_argument(1, argument)
        read (argument, *) iterations
    end if
    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    call MPI_Comm_set_name(MPI_COMM_WORLD, 'fortran ring')
    call gate(1)
    call MPI_Bcast(iterations, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
    right = mod(rank + 1, ranks)
    left = mod(rank + ranks - 1, ranks)

    do iteration = 1, iterations
        token = iteration
        if (rank == 0) call MPI_Send(token, 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD)
        call MPI_Recv(token, 1, MPI_INTEGER, left, 1, MPI_COMM_WORLD, status)
        call expect(token, iteration + left)
        call expect(status%MPI_SOURCE, left)
        token = token + 1
        if (rank /= 0) call MPI_Send(token, 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD)

        output = rank * 1000 + iteration
        call MPI_Irecv(input, large, MPI_INTEGER, left, 2, MPI_COMM_WORLD, requests(1))
        call MPI_Isend(output, large, MPI_INTEGER, right, 2, MPI_COMM_WORLD, requests(2))
        call MPI_Waitall(2, requests, statuses)
        call expect(minval(input), left * 1000 + iteration)
        call expect(maxval(input), left * 1000 + iteration)

        call MPI_Sendrecv(output, medium, MPI_INTEGER, left, 3, input, medium, MPI_INTEGER, right, 3, &
                          MPI_COMM_WORLD, MPI_STATUS_IGNORE)
        call expect(minval(input(1:medium)), right * 1000 + iteration)

        call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
        call expect(total, ranks * (ranks - 1) / 2)
        if (mod(iteration, 10) == 0) call MPI_Barrier(MPI_COMM_WORLD)
    end do
    call gate(3)
    call MPI_Finalize()
    if (rank == 0) print '(a,i0,a,i0,a)', 'ring_use_mpi_f08: ', ranks, ' ranks, ', iterations, ' iterations, all messages correct'

contains

    subroutine expect(got, wanted)
        integer, intent(in) :: got, wanted
        if (got /= wanted) then
            print '(a,i0,a,i0,a,i0,a,i0)', 'ring_use_mpi_f08: rank ', rank, ', iteration ', iteration, ': ', got, ' is not ', wanted
            call MPI_Abort(MPI_COMM_WORLD, 1)
        end if
    end subroutine
end program
