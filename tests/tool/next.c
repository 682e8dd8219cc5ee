/* A tool that goes before others: it passes calls on to the next MPI_X, which it looks for, not to PMPI_X.
 *
 * Before each MPI_Allreduce it calls MPI_Comm_size, and in MPI_Finalize MPI_Allreduce, both by their own names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <string.h>

static void find(void *function, const char *name) {
    void *next = dlsym(RTLD_NEXT, name);
    memcpy(function, &next, sizeof next);
}

int MPI_Allreduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    int (*next)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm), size;
    find(&next, "MPI_Allreduce");
    MPI_Comm_size(comm, &size);
    return next(out, in, count, type, op, comm);
}

int MPI_Sendrecv(const void *out, int sent, MPI_Datatype sent_type, int destination, int sent_tag, void *in, int received,
                 MPI_Datatype received_type, int source, int received_tag, MPI_Comm comm, MPI_Status *status) {
    int (*next)(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
    find(&next, "MPI_Sendrecv");
    return next(out, sent, sent_type, destination, sent_tag, in, received, received_type, source, received_tag, comm, status);
}

int MPI_Finalize(void) {
    int (*next)(void), one = 1, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    find(&next, "MPI_Finalize");
    return next();
}
