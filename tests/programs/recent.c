/* recent [K]: calls whose arguments tell one from another, in five parts (default of K: 1000). For two ranks or more.
 *
 * Calls per rank: Init, Comm_rank, Comm_size 1; Send to nobody 5 after gate 1; Isend, Recv, Wait, Sendrecv, Send to nobody,
 * Allreduce, Bcast 1 each after gate 2; Send to nobody K times after gate 3, with the number of the call as count and tag; Send to
 * nobody 10 after gate 4; Finalize 1 after gate 5. */
#include "gate.h"

#include <mpi.h>

static void send_to_nobody(int calls) {
    static int buffer[1];
    for (int i = 0; i < calls; i++)
        MPI_Send(buffer, i, MPI_INT, MPI_PROC_NULL, i, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int rank, size, out[3] = {1, 2, 3}, in[3], calls = argc > 1 ? atoi(argv[1]) : 1000;
    double number = 1, numbers[2];
    long longs[4] = {0};
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    gate(1);
    send_to_nobody(5);
    gate(2);
    MPI_Isend(out, 3, MPI_INT, right, 11, MPI_COMM_WORLD, &request);
    MPI_Recv(in, 3, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&number, 1, MPI_DOUBLE, right, 21, numbers, 2, MPI_DOUBLE, left, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, 2, MPI_CHAR, MPI_PROC_NULL, 31, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(longs, 4, MPI_LONG, 1, MPI_COMM_WORLD);
    gate(3);
    send_to_nobody(calls);
    gate(4);
    send_to_nobody(10);
    gate(5);
    MPI_Finalize();
    return 0;
}
