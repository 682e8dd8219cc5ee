/* named_datatype: rank 0 waits in MPI_Recv for 3 elements of a datatype that is called "particle" (40 bytes), rank 1 for 5 of
 * MPI_DOUBLE, which nobody sends. Ends only when it is killed.
 *
 * Calls per rank: Init, Comm_rank, Type_contiguous, Type_commit, Type_set_name 1; then open for ever: Recv. */
#include "gate.h"

#include <mpi.h>

int main(int argc, char **argv) {
    int rank;
    double never[15];
    MPI_Datatype particle;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_contiguous(5, MPI_DOUBLE, &particle);
    MPI_Type_commit(&particle);
    MPI_Type_set_name(particle, "particle");
    gate(1);
    if (rank == 0)
        MPI_Recv(never, 3, particle, 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Recv(never, 5, MPI_DOUBLE, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
