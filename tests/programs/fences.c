/* fences FILE: windows and a file that all ranks use together, while one is late (late.h).
 *
 * MPI_Init; MPI_Win_create twice; 20 times: the last rank comes later to MPI_Win_fence on the second window, and all to one on the first;
 * MPI_Win_free twice, the second window first; MPI_File_open; 5 times: rank 0 comes later to MPI_File_write_at_all; MPI_File_close;
 * MPI_Finalize. The file is removed when it is closed. Besides, MPI_Comm_rank and MPI_Comm_size once. */
#include <mpi.h>
#include "late.h"

enum { FENCES = 20, WRITES = 5 };

int main(int argc, char **argv) {
    int rank, ranks, one = 0, other = 0;
    MPI_Win windows[2];
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Win_create(&one, sizeof one, sizeof one, MPI_INFO_NULL, MPI_COMM_WORLD, &windows[0]);
    MPI_Win_create(&other, sizeof other, sizeof other, MPI_INFO_NULL, MPI_COMM_WORLD, &windows[1]);
    for (int fence = 0; fence < FENCES; fence++) {
        if (rank == ranks - 1) {
            come_late(fence == 0);
        }
        MPI_Win_fence(0, windows[1]);
        MPI_Win_fence(0, windows[0]);
    }
    MPI_Win_free(&windows[1]);
    MPI_Win_free(&windows[0]);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    for (int write = 0; write < WRITES; write++) {
        if (rank == 0) {
            come_late(write == 0);
        }
        MPI_File_write_at_all(file, (MPI_Offset)rank * (MPI_Offset)sizeof rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
