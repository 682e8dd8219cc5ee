/* many_communicators N: every rank makes, uses and frees N communicators by MPI_Comm_split, one after the other: even turns halves, odd
 * turns all in reverse order. Over each it calls MPI_Allreduce of one int; once more over MPI_COMM_WORLD at the end. Gate 1 after
 * MPI_Init. */
#include "gate.h"

#include <mpi.h>

int main(int argc, char **argv) {
    int rank, number = argc > 1 ? atoi(argv[1]) : 1000, one = 1, sum, failed = 0, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gate(1);
    for (int i = 0; i < number; i++) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, i % 2 ? 0 : rank % 2, i % 2 ? -rank : rank, &comm);
        MPI_Comm_size(comm, &size);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        failed |= sum != size;
        MPI_Comm_free(&comm);
    }
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failed;
}
