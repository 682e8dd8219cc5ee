/* hang_files CASE: ranks that hang in calls on files that all have to make, each function a case. Ends only when it is killed, but for `none`,
 * in which nobody hangs. The file is one of the system's for what is not kept. Three ranks.
 *
 * Calls per rank: Init, Comm_rank; then by case. */
#include "../gate.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int rank, value;
static MPI_File file;
static char name[] = "/tmp/mpiprobe-hang-XXXXXX";

/* It has no name any more then. */
static void open_file(void) {
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        unlink(name);
}

static __attribute__((noinline)) void leave_out(int one) {
    if (rank == one)
        MPI_Recv(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void set_view(void) {
    open_file();
    leave_out(2);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void write_all(void) {
    open_file();
    leave_out(1);
    MPI_File_write_at_all(file, rank * 4, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void close_file(void) {
    open_file();
    leave_out(2);
    MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void none(void) {
    open_file();
    for (;;)
        MPI_File_write_at_all(file, rank * 4, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
}

static const struct {
    const char *name;
    void (*hang)(void);
} cases[] = {
    {"set-view", set_view},
    {"write-all", write_all},
    {"close", close_file},
    {"none", none},
};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        close(mkstemp(name));
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    gate(1);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc > 1 && strcmp(argv[1], cases[i].name) == 0)
            cases[i].hang();
    MPI_Finalize();
    return 0;
}
