/* halves: communicators that were made long ago, over which nothing synchronises. Four ranks.
 *
 * MPI_Comm_split of the world into two halves; then, in each of STEPS steps MPI_Bcast over the half, whose root comes 0.2 ms
 * late, and in each fourth step MPI_Barrier over the world.
 *
 * Gate: 1 after MPI_Comm_split. */
#include <mpi.h>
#include <unistd.h>

#include "gate.h"

enum { STEPS = 200 };

int main(int argc, char **argv) {
    int rank, number = 1;
    MPI_Comm half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &half);
    gate(1);
    for (int step = 0; step < STEPS; step++) {
        if (rank % 2 == 0)
            usleep(200);
        MPI_Bcast(&number, 1, MPI_INT, 0, half);
        if (step % 4 == 3)
            MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Comm_free(&half);
    MPI_Finalize();
}
