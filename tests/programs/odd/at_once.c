/* at_once [ROUNDS]: sends that MPI may complete as they are posted, so that many of them have one request, or none of their own.
 *
 * In each of ROUNDS rounds (default 10) rank 0 posts, all of them one int each: 8 MPI_Isend to rank 1, then MPI_Waitall; 4 MPI_Isend to
 * MPI_PROC_NULL and 4 to rank 1 between them, then MPI_Wait for each, the last one first; 8 MPI_Issend to rank 1, then MPI_Testall until
 * all are complete; 2 MPI_Isend to rank 1 and MPI_Request_free of each. Rank 1 receives by 22 MPI_Irecv and one MPI_Waitall. Then both are
 * in MPI_Barrier. Two ranks. */
#include "../gate.h"

#include <mpi.h>

enum { MANY = 8 };

static int values[32];

static void send_all(void) {
    MPI_Request requests[MANY];
    int done = 0;
    for (int i = 0; i < MANY; i++)
        MPI_Isend(&values[i], 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MANY; i++)
        MPI_Isend(&values[i], 1, MPI_INT, i % 2 == 0 ? MPI_PROC_NULL : 1, 0, MPI_COMM_WORLD, &requests[i]);
    for (int i = MANY; i-- > 0;)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    for (int i = 0; i < MANY; i++)
        MPI_Issend(&values[i], 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &requests[i]);
    while (!done)
        MPI_Testall(MANY, requests, &done, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++) {
        MPI_Isend(&values[i], 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &requests[i]);
        MPI_Request_free(&requests[i]);
    }
}

static void receive_all(void) {
    enum { ALL = 2 * MANY + MANY / 2 + 2 };
    MPI_Request requests[ALL];
    for (int i = 0; i < ALL; i++)
        MPI_Irecv(&values[i], 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(ALL, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv) {
    int rank, rounds = argc > 1 ? atoi(argv[1]) : 10;
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
