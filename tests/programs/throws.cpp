// throws [N]: N sends (default 10) to an invalid rank, whose error handler leaves MPI_Send by a C++ exception that the caller
// catches. The calls begin and never return.
//
// Calls per rank: Init, Comm_rank, Comm_create_errhandler, Comm_set_errhandler, Errhandler_free, Barrier, Finalize 1; Send N,
// none of them completed. Gate: 1 after MPI_Init.
#include "gate.h"

#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <stdexcept>

static void leave(MPI_Comm *, int *, ...) {
    throw std::runtime_error("invalid rank");
}

int main(int argc, char **argv) {
    const int sends = argc > 1 ? std::atoi(argv[1]) : 10;
    int rank, caught = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gate(1);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    for (int i = 0; i < sends; i++) {
        try {
            MPI_Send(&rank, 1, MPI_INT, 1000000, 0, MPI_COMM_WORLD);
        } catch (const std::runtime_error &) {
            caught++;
        }
    }
    MPI_Errhandler_free(&handler);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0)
        std::printf("throws: %d exceptions caught\n", caught);
    return caught == sends ? 0 : 1;
}
