! questions: asks nearly every local question of MPI once, through `use mpi_f08`, and some through mpif.h, those that were given up among them.
! What the Fortran library asks meanwhile to answer is not the program's. Left out is what libraries answer without the C function:
! attributes, sums of addresses, MPI_Type_match_size. Two ranks. Gate: 1 after MPI_Init. Exit status 1 on a wrong answer.
program questions
    use mpi_f08
    implicit none
    external :: gate, by_mpif
    integer :: rank, size, number, other, length
    integer :: numbers(2), places(2), from_weights(2), to_weights(2), ones(2), twos(2)
    integer(MPI_ADDRESS_KIND) :: address, bytes, values(2)
    integer(MPI_COUNT_KIND) :: count, from
    logical :: flag, periods(2)
    character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: text
    double precision :: seconds
    integer, asynchronous :: buffer(4)
    type(MPI_Comm) :: grid, graph, neighbours, parent
    type(MPI_Group) :: group, same
    type(MPI_Info) :: info
    type(MPI_Datatype) :: vector, etype, filetype, contents(1)
    type(MPI_Errhandler) :: handler
    type(MPI_Status) :: status
    type(MPI_Win) :: window
    type(MPI_File) :: file
    integer(MPI_OFFSET_KIND) :: offset
    character(len=1024) :: directory

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, size)
    call expect(size == 2)
    call gate(1)

    call MPI_Initialized(flag)
    call MPI_Finalized(flag)
    call MPI_Query_thread(number)
    call MPI_Is_thread_main(flag)
    call MPI_Get_version(number, other)
    call MPI_Get_library_version(text, length)
    call MPI_Get_processor_name(text, length)
    call MPI_Error_class(MPI_ERR_TAG, number)
    call MPI_Error_string(MPI_ERR_TAG, text, length)
    seconds = MPI_Wtime() + MPI_Wtick()
    call MPI_Get_address(buffer, address)

    numbers = 0
    call MPI_Dims_create(2, 2, numbers)
    call MPI_Cart_create(MPI_COMM_WORLD, 2, [2, 1], [.true., .false.], .false., grid)
    call MPI_Cartdim_get(grid, number)
    call MPI_Cart_get(grid, 2, numbers, periods, places)
    call MPI_Cart_rank(grid, [1, 0], number)
    call expect(number == 1)
    call MPI_Cart_coords(grid, 1, 2, places)
    call MPI_Cart_shift(grid, 0, 1, number, other)
    call MPI_Cart_map(grid, 2, [2, 1], periods, number)
    call MPI_Topo_test(grid, number)
    call expect(number == MPI_CART)
    call MPI_Graph_create(MPI_COMM_WORLD, 2, [1, 2], [1, 0], .false., graph)
    call MPI_Graphdims_get(graph, number, other)
    call MPI_Graph_get(graph, 2, 2, ones, twos)
    call MPI_Graph_neighbors_count(graph, 0, number)
    call MPI_Graph_neighbors(graph, 0, 1, ones)
    call MPI_Graph_map(graph, 2, [1, 2], [1, 0], number)
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [1 - rank], [1], 1, [1 - rank], [1], MPI_INFO_NULL, &
                                        .false., neighbours)
    call MPI_Dist_graph_neighbors_count(neighbours, number, other, flag)
    call MPI_Dist_graph_neighbors(neighbours, 1, ones, from_weights, 1, twos, to_weights)

    call MPI_Comm_compare(grid, MPI_COMM_WORLD, number)
    call MPI_Comm_test_inter(grid, flag)
    call MPI_Comm_get_errhandler(MPI_COMM_WORLD, handler)
    call MPI_Errhandler_free(handler)
    call MPI_Comm_get_name(MPI_COMM_WORLD, text, length)
    call MPI_Comm_get_parent(parent)
    call MPI_Comm_get_info(MPI_COMM_WORLD, info)
    call MPI_Info_free(info)
    call MPI_Comm_group(MPI_COMM_WORLD, group)
    call MPI_Comm_group(grid, same)
    call MPI_Group_compare(group, same, number)
    call MPI_Group_rank(group, number)
    call MPI_Group_size(group, number)
    call MPI_Group_translate_ranks(group, 2, [0, 1], same, numbers)
    call MPI_Group_free(group)
    call MPI_Group_free(same)

    call MPI_Info_create(info)
    call MPI_Info_set(info, 'question', 'answer')
    call MPI_Info_get_nkeys(info, number)
    call MPI_Info_get_nthkey(info, 0, text)
    call MPI_Info_get_valuelen(info, 'question', length, flag)
    call MPI_Info_get(info, 'question', length, text, flag)
    call expect(flag .and. text(:length) == 'answer')
    call MPI_Info_free(info)
    call MPI_Op_commutative(MPI_SUM, flag)

    call MPI_Type_vector(2, 1, 2, MPI_INTEGER, vector)
    call MPI_Type_commit(vector)
    call MPI_Type_size(vector, number)
    call MPI_Type_size_x(vector, count)
    call expect(number == 8 .and. count == 8)
    call MPI_Type_get_extent(vector, address, bytes)
    call MPI_Type_get_extent_x(vector, from, count)
    call MPI_Type_get_true_extent(vector, address, bytes)
    call MPI_Type_get_true_extent_x(vector, from, count)
    call MPI_Type_get_name(vector, text, length)
    call MPI_Type_get_envelope(vector, numbers(1), numbers(2), places(1), number)
    call MPI_Type_get_contents(vector, 3, 0, 1, buffer, values, contents)
    call MPI_Pack_size(1, vector, MPI_COMM_WORLD, number)
    call MPI_Pack_external_size('external32', 1, MPI_INTEGER, bytes)
    buffer = rank
    call MPI_Sendrecv_replace(buffer, 2, MPI_INTEGER, 1 - rank, 7, 1 - rank, 7, MPI_COMM_WORLD, status)
    call MPI_Get_count(status, MPI_INTEGER, number)
    call MPI_Get_elements(status, MPI_INTEGER, other)
    call expect(number == 2 .and. other == 2)
    call MPI_Test_cancelled(status, flag)
    call MPI_Type_free(vector)

    bytes = 16
    call MPI_Win_create(buffer, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window)
    call MPI_Win_get_errhandler(window, handler)
    call MPI_Win_get_group(window, group)
    call MPI_Group_free(group)
    call MPI_Win_get_info(window, info)
    call MPI_Info_free(info)
    call MPI_Win_get_name(window, text, length)
    call MPI_Win_free(window)

    call get_environment_variable('MPIPROBE_TRUTH_DIR', directory)
    if (directory == '') directory = '/tmp'
    call MPI_File_open(MPI_COMM_WORLD, trim(directory) // '/questions', &
                       MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, file)
    call MPI_File_get_amode(file, number)
    call MPI_File_get_atomicity(file, flag)
    call MPI_File_get_byte_offset(file, 0_MPI_OFFSET_KIND, offset)
    call MPI_File_get_errhandler(file, handler)
    call MPI_File_get_group(file, group)
    call MPI_Group_free(group)
    call MPI_File_get_info(file, info)
    call MPI_Info_free(info)
    call MPI_File_get_position(file, offset)
    call MPI_File_get_type_extent(file, MPI_INTEGER, address)
    call MPI_File_get_view(file, offset, etype, filetype, text)
    call MPI_File_close(file)

    call by_mpif(grid%MPI_VAL)
    call MPI_Comm_free(grid)
    call MPI_Comm_free(graph)
    call MPI_Comm_free(neighbours)
    call MPI_Finalize()
    if (rank == 0) print '(a)', 'questions: all answers correct'

contains

    subroutine expect(holds)
        logical, intent(in) :: holds
        if (.not. holds) then
            print '(a,i0,a)', 'questions: rank ', rank, ': wrong answer'
            call MPI_Abort(MPI_COMM_WORLD, 1)
        end if
    end subroutine
end program

! With the handles of mpif.h.
subroutine by_mpif(grid)
    implicit none
    include 'mpif.h'
    integer, intent(in) :: grid
    integer :: ierror, number, other, places(2), sizes(2)
    logical :: periods(2)
    integer(MPI_ADDRESS_KIND) :: address, bytes
    external :: MPI_Cart_rank, MPI_Cart_get, MPI_Cart_coords, MPI_Cart_shift, MPI_Type_extent, MPI_Type_lb, MPI_Type_ub
    external :: MPI_Type_size, MPI_Type_get_extent, MPI_Comm_group, MPI_Group_free, MPI_Pack_size

    call MPI_Cart_rank(grid, [1, 0], number, ierror)
    if (number /= 1) call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
    call MPI_Cart_get(grid, 2, sizes, periods, places, ierror)
    call MPI_Cart_coords(grid, 1, 2, places, ierror)
    call MPI_Cart_shift(grid, 0, 1, number, other, ierror)
    call MPI_Type_size(MPI_INTEGER, number, ierror)
    call MPI_Type_get_extent(MPI_INTEGER, address, bytes, ierror)
    call MPI_Type_extent(MPI_INTEGER, number, ierror)
    call MPI_Type_lb(MPI_INTEGER, number, ierror)
    call MPI_Type_ub(MPI_INTEGER, number, ierror)
    call MPI_Comm_group(MPI_COMM_WORLD, other, ierror)
    call MPI_Group_free(other, ierror)
    call MPI_Pack_size(1, MPI_INTEGER, MPI_COMM_WORLD, number, ierror)
end subroutine
