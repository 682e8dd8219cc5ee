/* communicator_orders: communicators with the same members, which ranks use in other orders than they have made them in, or never.
 *
 * Of each of three ranks: three MPI_Comm_dup of the world. Rank 0 sends over the first one to rank 1, and rank 2 does not use it. The others are
 * used first by MPI_Ibarrier, in the order that they were made in by ranks 0 and 2, and the other way round by rank 1. Over the second one,
 * ROUNDS MPI_Allreduce, over the third one as many MPI_Barrier. None of them is freed. */
#include <mpi.h>

enum { ROUNDS = 20 };

int main(int argc, char **argv) {
    int rank, number = 1, sum;
    MPI_Comm few, sums, meetings;
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &few);
    MPI_Comm_dup(MPI_COMM_WORLD, &sums);
    MPI_Comm_dup(MPI_COMM_WORLD, &meetings);

    MPI_Ibarrier(rank == 1 ? meetings : sums, &requests[0]);
    MPI_Ibarrier(rank == 1 ? sums : meetings, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (rank == 0)
        MPI_Send(&number, 1, MPI_INT, 1, 0, few);
    if (rank == 1)
        MPI_Recv(&number, 1, MPI_INT, 0, 0, few, MPI_STATUS_IGNORE);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, sums);
        MPI_Barrier(meetings);
    }
    MPI_Finalize();
    return sum != 3;
}
