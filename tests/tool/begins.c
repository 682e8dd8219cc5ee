/* A tool that sees how programs begin to use MPI, and two functions of which one may be called in a callback of the other. */
#include <mpi.h>

int MPI_Init(int *argc, char ***argv) {
    return PMPI_Init(argc, argv);
}

int MPI_Comm_delete_attr(MPI_Comm comm, int key) {
    return PMPI_Comm_delete_attr(comm, key);
}

int MPI_Comm_size(MPI_Comm comm, int *size) {
    return PMPI_Comm_size(comm, size);
}
