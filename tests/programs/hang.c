/* hang [K]: K allreduces (default 10), then a deadlock: rank 1 waits in MPI_Recv for a message that nobody sends, all
 * others wait in MPI_Barrier for rank 1. Ends only when it is killed.
 *
 * Calls per rank: Init, Comm_rank 1; Allreduce K; then open for ever: Recv (rank 1), Barrier (others). */
#include "gate.h"

#include <mpi.h>

int main(int argc, char **argv) {
    int rank, sum, never, calls = argc > 1 ? atoi(argv[1]) : 10;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gate(1);
    for (int i = 0; i < calls; i++)
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Recv(&never, 1, MPI_INT, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
