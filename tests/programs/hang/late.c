/* late: rank 0 is in MPI_Recv while rank 1 waits before gate 1; behind it the message is sent, and rank 0 prints when it has left the
 * call, by CLOCK_MONOTONIC; then both wait before gate 2. Two ranks.
 *
 * Calls per rank: Init, Comm_rank, Finalize 1; Recv 1 (rank 0), Send 1 (rank 1). */
#include "../gate.h"

#include <mpi.h>
#include <time.h>

int main(int argc, char **argv) {
    int rank, value = 0;
    struct timespec now;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1) {
        gate(1);
        MPI_Send(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        clock_gettime(CLOCK_MONOTONIC, &now);
        printf("left %lld%09ld\n", (long long)now.tv_sec, now.tv_nsec);
        fflush(stdout);
    }
    gate(2);
    MPI_Finalize();
    return 0;
}
