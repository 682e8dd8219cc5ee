/* groups: calls functions of every group once or a few times each, in all their modes, and checks the results. Four ranks.
 *
 * Every call is counted by the program (counted.h): that is the list of what a tool must have seen. No count depends on
 * timing: whatever may or may not be complete is tested once and then waited for. Gates: 1 after MPI_Init_thread, 2 before
 * MPI_Finalize. Exit status 1 on a wrong result. */
#include "groups.h"

int rank, size, right, left;

void expect(int holds, const char *condition, const char *file, int line) {
    if (holds)
        return;
    fprintf(stderr, "groups: rank %d: %s:%d: not true: %s\n", rank, file, line, condition);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void environment(void) {
    int flag, version, subversion, length;
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    CALL(MPI_Initialized)(&flag);
    EXPECT(flag);
    CALL(MPI_Finalized)(&flag);
    EXPECT(!flag);
    CALL(MPI_Query_thread)(&flag);
    EXPECT(flag >= MPI_THREAD_FUNNELED);
    CALL(MPI_Get_version)(&version, &subversion);
    EXPECT(version >= 3);
    CALL(MPI_Get_processor_name)(name, &length);
    CALL(MPI_Get_library_version)(name, &length);
    EXPECT(CALL(MPI_Wtime)() >= 0);
    EXPECT(CALL(MPI_Wtick)() > 0);
    /* Profiling off, on, flush, and tool-defined levels with more arguments. */
    CALL(MPI_Pcontrol)(0);
    CALL(MPI_Pcontrol)(1);
    CALL(MPI_Pcontrol)(2, "phase", 42, 3.5);
    CALL(MPI_Pcontrol)(-7, 1.25, 1, 2, 3, 4, 5, 6, 7, 8, 9);
}

int main(int argc, char **argv) {
    int provided;
    CALL(MPI_Init_thread)(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    CALL(MPI_Comm_rank)(MPI_COMM_WORLD, &rank);
    CALL(MPI_Comm_size)(MPI_COMM_WORLD, &size);
    EXPECT(size == 4);
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    gate(1);
    environment();
    point_to_point();
    completion();
    collectives();
    nonblocking_collectives();
    neighbourhoods();
    datatypes();
    communicators();
    one_sided();
    input_output();
    gate(2);
    CALL(MPI_Finalize)();
    save_counts(rank);
    if (rank == 0)
        printf("groups: all results correct\n");
    return 0;
}
