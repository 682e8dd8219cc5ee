/* A program that polls only at its beginning: two ranks make persistent requests, ask for a request that is complete until they are asked
   to stop, do nothing until the second gate, and exchange messages then: EXCHANGES of 250 ints by MPI_Isend and MPI_Irecv, and 5 of 3 ints
   by the persistent requests.

   usage: polls_once EXCHANGES  */
#include <mpi.h>
#include <stdlib.h>

#include "gate.h"

int main(int argc, char **argv)
{
    int exchanges = argc > 1 ? atoi(argv[1]) : 100, rank, found, out[250] = {0}, in[250];
    MPI_Request none = MPI_REQUEST_NULL, both[2], persistent[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int other = 1 - rank;
    gate(1);
    MPI_Recv_init(in, 3, MPI_INT, other, 8, MPI_COMM_WORLD, &persistent[0]);
    MPI_Send_init(out, 3, MPI_INT, other, 8, MPI_COMM_WORLD, &persistent[1]);
    while (!stop_requested())
        for (int i = 0; i < 4096; i++)
            MPI_Test(&none, &found, MPI_STATUS_IGNORE);
    gate(2);
    for (int i = 0; i < exchanges; i++) {
        MPI_Irecv(in, 250, MPI_INT, other, 7, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(out, 250, MPI_INT, other, 7, MPI_COMM_WORLD, &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < 5; i++) {
        MPI_Startall(2, persistent);
        MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&persistent[0]);
    MPI_Request_free(&persistent[1]);
    MPI_Finalize();
    return 0;
}
