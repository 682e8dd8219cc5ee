/* nested_io [N]: N times (default 5) a collective write and read through an interleaved file view, by blocking, split and
 * nonblocking calls. ROMIO (MPICH, Intel MPI) makes many MPI calls inside these, which must not be taken for the program's own.
 *
 * Calls are counted by the program (counted.h). Gates: 1 after MPI_Init, 2 before MPI_Finalize. Exit status 1 on wrong data. */
#include "counted.h"
#include "gate.h"

#include <mpi.h>
#include <string.h>

enum { BLOCKS = 8, BLOCK = 16, WORDS = BLOCKS * BLOCK };

static int rank, size;

static void verify(const int *data, int iteration) {
    for (int i = 0; i < WORDS; i++)
        if (data[i] != rank * 100000 + iteration * 1000 + i) {
            fprintf(stderr, "nested_io: rank %d, iteration %d: wrong word %d\n", rank, iteration, i);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

int main(int argc, char **argv) {
    int iterations = argc > 1 ? atoi(argv[1]) : 5, out[WORDS], in[WORDS];
    const char *directory = getenv("MPIPROBE_TRUTH_DIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/nested_io.data", directory ? directory : "/tmp");

    CALL(MPI_Init)(&argc, &argv);
    CALL(MPI_Comm_rank)(MPI_COMM_WORLD, &rank);
    CALL(MPI_Comm_size)(MPI_COMM_WORLD, &size);
    gate(1);
    MPI_Datatype interleaved;
    CALL(MPI_Type_vector)(BLOCKS, BLOCK, BLOCK * size, MPI_INT, &interleaved);
    CALL(MPI_Type_commit)(&interleaved);
    MPI_File file;
    CALL(MPI_File_open)(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    CALL(MPI_File_set_view)(file, (MPI_Offset)(rank * BLOCK * sizeof(int)), MPI_INT, interleaved, "native", MPI_INFO_NULL);
    for (int iteration = 0; iteration < iterations; iteration++) {
        for (int i = 0; i < WORDS; i++)
            out[i] = rank * 100000 + iteration * 1000 + i;
        memset(in, 0, sizeof in);
        MPI_Status status;
        MPI_Request request;
        switch (iteration % 3) {
        case 0:
            CALL(MPI_File_write_at_all)(file, 0, out, WORDS, MPI_INT, &status);
            CALL(MPI_File_read_at_all)(file, 0, in, WORDS, MPI_INT, &status);
            break;
        case 1:
            CALL(MPI_File_write_at_all_begin)(file, 0, out, WORDS, MPI_INT);
            CALL(MPI_File_write_at_all_end)(file, out, &status);
            CALL(MPI_File_read_at_all_begin)(file, 0, in, WORDS, MPI_INT);
            CALL(MPI_File_read_at_all_end)(file, in, &status);
            break;
        default:
            CALL(MPI_File_iwrite_at_all)(file, 0, out, WORDS, MPI_INT, &request);
            CALL(MPI_Wait)(&request, &status);
            CALL(MPI_File_iread_at_all)(file, 0, in, WORDS, MPI_INT, &request);
            CALL(MPI_Wait)(&request, &status);
        }
        verify(in, iteration);
    }
    CALL(MPI_File_close)(&file);
    CALL(MPI_Type_free)(&interleaved);
    if (rank == 0)
        CALL(MPI_File_delete)(path, MPI_INFO_NULL);
    gate(2);
    CALL(MPI_Finalize)();
    save_counts(rank);
    if (rank == 0)
        printf("nested_io: %d iterations, all data correct\n", iterations);
    return 0;
}
