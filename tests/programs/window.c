/* window: two ranks that do all they have to do as soon as MPI is initialised, and end.
 *
 * Calls after MPI_Init: rank 0 sends rank 1 an int 440 times, 220 times by MPI_Send over MPI_COMM_WORLD and 220 times by MPI_Isend over a
 * duplicate of it, each followed by MPI_Wait; rank 1 receives them by MPI_Recv and MPI_Irecv. Then MPI_Bcast, by rank 0, of one element of a
 * datatype of three ints.
 * Gate: start before MPI_Init. */
#include "gate.h"

#include <mpi.h>

enum { ROUNDS = 220 };

int main(int argc, char **argv) {
    int rank, value = 7, three[3] = {0};
    MPI_Comm duplicate;
    MPI_Datatype triple;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 0) {
            MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
            MPI_Isend(&value, 1, MPI_INT, 1, 0, duplicate, &request);
        } else {
            MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Irecv(&value, 1, MPI_INT, 0, 0, duplicate, &request);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Type_contiguous(3, MPI_INT, &triple);
    MPI_Type_commit(&triple);
    MPI_Bcast(three, 1, triple, 0, MPI_COMM_WORLD);
    MPI_Type_free(&triple);
    MPI_Comm_free(&duplicate);
    MPI_Finalize();
    return 0;
}
