/* circle [K [exchange]]: K allreduces (default 10), then a deadlock: each rank waits in MPI_Recv for a message of the next one,
 * the last for one of the first; with "exchange" in MPI_Sendrecv, which sends nothing. Ends only when it is killed.
 *
 * Calls per rank: Init, Comm_rank, Comm_size 1; Allreduce K; then open for ever: Recv, or Sendrecv. */
#include "gate.h"

#include <mpi.h>

int main(int argc, char **argv) {
    int rank, size, sum, never, calls = argc > 1 ? atoi(argv[1]) : 10;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gate(1);
    for (int i = 0; i < calls; i++)
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    int next = (rank + 1) % size;
    if (argc > 2)
        MPI_Sendrecv(&rank, 1, MPI_INT, MPI_PROC_NULL, 8, &never, 1, MPI_INT, next, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Recv(&never, 1, MPI_INT, next, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
