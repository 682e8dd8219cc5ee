/* A tool on MPI's profiling interface, as others write them: it counts what it stands before, and makes a call of its own.
 *
 * Before each MPI_Allreduce it calls PMPI_Barrier, to tell waiting from reducing. Its counts go to the file "RANK" in the directory
 * TOOL_OUTPUT: "allreduces receives". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int allreduces, receives;

int MPI_Allreduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    allreduces++;
    PMPI_Barrier(comm);
    return PMPI_Allreduce(out, in, count, type, op, comm);
}

int MPI_Recv(void *in, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status) {
    receives++;
    return PMPI_Recv(in, count, type, source, tag, comm, status);
}

int MPI_Finalize(void) {
    char path[4096];
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s/%d", getenv("TOOL_OUTPUT"), rank);
    FILE *file = fopen(path, "w");
    if (file != NULL) {
        fprintf(file, "%d %d", allreduces, receives);
        fclose(file);
    }
    return PMPI_Finalize();
}
