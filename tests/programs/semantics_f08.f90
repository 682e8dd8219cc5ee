! semantics_f08: the forms of calls that are most easily misread, through `use mpi_f08`: the same traffic as semantics_cxx and
! semantics_mpi4py. Four ranks. Gates: 1 after MPI_Init, 2 when communicators, types and persistent requests exist, 3 before they
! are freed. Exit status 1 on wrong data.
program semantics_f08
    use mpi_f08
    implicit none
    external :: gate
    integer :: rank, size, right, left, opposite, i
    integer, asynchronous :: output(64), input(64)
    integer :: counts(4) = [1, 2, 3, 4], places(4) = [0, 1, 3, 6]
    double precision :: three(3), got(3)
    type(MPI_Comm) :: half
    type(MPI_Datatype) :: sparse
    type(MPI_Request) :: persistent(2), requests(2)
    type(MPI_Status) :: status
    integer(MPI_ADDRESS_KIND) :: bytes
    integer(MPI_OFFSET_KIND) :: offset
    type(MPI_Win) :: window
    type(MPI_File) :: file
    character(len=1024) :: directory
    integer, asynchronous :: memory(16)

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, size)
    call expect(size == 4)
    right = mod(rank + 1, 4)
    left = mod(rank + 3, 4)
    opposite = mod(rank + 2, 4)
    output = [(rank * 1000 + i, i = 1, 64)]
    call gate(1)
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half)
    call MPI_Comm_set_name(half, 'half')
    call MPI_Type_vector(3, 1, 2, MPI_INTEGER, sparse)
    call MPI_Type_commit(sparse)
    call MPI_Recv_init(input, 3, MPI_INTEGER, left, 5, MPI_COMM_WORLD, persistent(1))
    call MPI_Send_init(output, 3, MPI_INTEGER, right, 5, MPI_COMM_WORLD, persistent(2))
    call gate(2)

    ! The amounts are below what a library sends at once, so nobody waits for a partner here.
    call MPI_Send(output, 10, MPI_INTEGER, right, 1, MPI_COMM_WORLD)
    call MPI_Recv(input, 16, MPI_INTEGER, left, 1, MPI_COMM_WORLD, status)
    call expect(all(input(1:10) == [(left * 1000 + i, i = 1, 10)]))
    call MPI_Send(output, 2, MPI_INTEGER, right, 2, MPI_COMM_WORLD)
    call MPI_Recv(input, 6, MPI_INTEGER, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, status)
    call expect(status%MPI_SOURCE == left)
    three = rank
    call MPI_Send(three, 3, MPI_DOUBLE_PRECISION, right, 3, MPI_COMM_WORLD)
    call MPI_Recv(got, 3, MPI_DOUBLE_PRECISION, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call expect(got(3) == left)
    call MPI_Send(output, 2, sparse, right, 4, MPI_COMM_WORLD)
    call MPI_Recv(input, 6, MPI_INTEGER, left, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call expect(input(3) == left * 1000 + 5)
    call MPI_Send(output, 64, MPI_INTEGER, MPI_PROC_NULL, 4, MPI_COMM_WORLD)
    call MPI_Irecv(input, 8, MPI_INTEGER, left, 6, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(output, 5, MPI_INTEGER, right, 6, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call MPI_Sendrecv(output, 4, MPI_INTEGER, 1 - rank / 2, 7, input, 4, MPI_INTEGER, 1 - rank / 2, 7, half, status)
    call expect(input(4) == opposite * 1000 + 4)
    do i = 1, 2
        call MPI_Start(persistent(1))
        call MPI_Start(persistent(2))
        call MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE)
    end do

    input = output
    call MPI_Bcast(input, 5, MPI_INTEGER, 2, MPI_COMM_WORLD)
    call expect(input(5) == 2005)
    call MPI_Allreduce(MPI_IN_PLACE, three, 3, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    call expect(three(1) == 6)
    call MPI_Gatherv(output, rank + 1, MPI_INTEGER, input, counts, places, MPI_INTEGER, 1, MPI_COMM_WORLD)
    call expect(rank /= 1 .or. input(10) == 3004)
    if (rank == 0) then
        call MPI_Scatter(output, 2, MPI_INTEGER, MPI_IN_PLACE, 0, MPI_INTEGER, 0, MPI_COMM_WORLD)
    else
        call MPI_Scatter(output, 2, MPI_INTEGER, input, 2, MPI_INTEGER, 0, MPI_COMM_WORLD)
    end if
    call expect(rank == 0 .or. input(1) == 2 * rank + 1)
    call MPI_Alltoall(output, 2, MPI_INTEGER, input, 2, MPI_INTEGER, MPI_COMM_WORLD)
    call MPI_Reduce_scatter(output, input, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)

    bytes = 64
    call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window)
    call MPI_Win_fence(0, window)
    call MPI_Put(output, 3, MPI_INTEGER, right, 0_MPI_ADDRESS_KIND, 3, MPI_INTEGER, window)
    call MPI_Win_fence(0, window)
    call expect(memory(3) == left * 1000 + 3)
    call MPI_Win_free(window)
    call get_environment_variable('MPIPROBE_TRUTH_DIR', directory)
    if (directory == '') directory = '/tmp'
    call MPI_File_open(MPI_COMM_WORLD, trim(directory) // '/semantics_f08', &
                       MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, file)
    offset = rank * 64
    call MPI_File_write_at(file, offset, output, 16, MPI_INTEGER, MPI_STATUS_IGNORE)
    call MPI_File_close(file)

    call gate(3)
    do i = 1, 2
        call MPI_Request_free(persistent(i))
    end do
    call MPI_Type_free(sparse)
    call MPI_Comm_free(half)
    call MPI_Finalize()
    if (rank == 0) print '(a)', 'semantics_f08: all data correct'

contains

    subroutine expect(holds)
        logical, intent(in) :: holds
        if (.not. holds) then
            print '(a,i0,a)', 'semantics_f08: rank ', rank, ': wrong data'
            call MPI_Abort(MPI_COMM_WORLD, 1)
        end if
    end subroutine
end program
