/* at_once [ROUNDS [MANY]]: sends that MPI may complete as they are posted, so that many of them have one request, or none of their own.
 *
 * In each of ROUNDS rounds (default 10) rank 0 posts, all of them one int each: MANY (even, default 8, at most 128) MPI_Isend to rank 1, then
 * MPI_Waitall; MANY / 2 MPI_Isend to MPI_PROC_NULL and as many to rank 1 between them, then MPI_Wait for each, the last one first; MANY
 * MPI_Issend to rank 1, then MPI_Testall until all are complete; 2 MPI_Isend to rank 1 and MPI_Request_free of each. Rank 1 receives by
 * MPI_Irecv for each and one MPI_Waitall. Then both are in MPI_Barrier. Two ranks. */
#include "../gate.h"

#include <mpi.h>

enum { MOST = 128 };

static int many, values[3 * MOST];
static MPI_Request requests[3 * MOST];

static void send_all(void) {
    int done = 0;
    for (int i = 0; i < many; i++)
        MPI_Isend(&values[i], 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(many, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < many; i++)
        MPI_Isend(&values[i], 1, MPI_INT, i % 2 == 0 ? MPI_PROC_NULL : 1, 0, MPI_COMM_WORLD, &requests[i]);
    for (int i = many; i-- > 0;)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    for (int i = 0; i < many; i++)
        MPI_Issend(&values[i], 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &requests[i]);
    while (!done)
        MPI_Testall(many, requests, &done, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++) {
        MPI_Isend(&values[i], 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &requests[i]);
        MPI_Request_free(&requests[i]);
    }
}

static void receive_all(void) {
    int all = 2 * many + many / 2 + 2;
    for (int i = 0; i < all; i++)
        MPI_Irecv(&values[i], 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(all, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv) {
    int rank, rounds = argc > 1 ? atoi(argv[1]) : 10;
    many = argc > 2 ? atoi(argv[2]) : 8;
    if (many < 0 || many > MOST)
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < rounds; round++) {
        if (rank == 0)
            send_all();
        else if (rank == 1)
            receive_all();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
