/* callback: MPI_Comm_dup has the program copy an attribute, and that function waits before gate 1, calls MPI itself, also where the call
 * it is in was made, and says when it is done. When the call has returned, each rank prints both times, by CLOCK_MONOTONIC. Then all
 * do the same once more without being held, and wait before gate 2. Two ranks.
 *
 * Calls per rank: Init, Comm_rank, Comm_create_keyval, Comm_set_attr, Finalize 1; Comm_dup, Barrier 2; in each Comm_dup of these besides
 * Barrier 3, Comm_dup, Comm_free 1. */
#include "../gate.h"

#include <mpi.h>
#include <time.h>

static long long done_ns, left_ns;

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static __attribute__((noinline)) MPI_Comm duplicate(MPI_Comm comm) {
    MPI_Comm copy;
    MPI_Comm_dup(comm, &copy);
    left_ns = now_ns();
    return copy;
}

static int copy_attribute(MPI_Comm comm, int keyval, void *extra, void *from, void *to, int *flag) {
    MPI_Comm inner;
    (void)comm, (void)keyval, (void)extra, (void)from, (void)to;
    gate(1);
    for (int i = 0; i < 3; i++)
        MPI_Barrier(MPI_COMM_SELF);
    inner = duplicate(MPI_COMM_SELF);
    MPI_Comm_free(&inner);
    *flag = 0;
    done_ns = now_ns();
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    int rank, keyval;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_create_keyval(copy_attribute, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &keyval);
    duplicate(MPI_COMM_WORLD);
    printf("rank %d done %lld left %lld\n", rank, done_ns, left_ns);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    duplicate(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    gate(2);
    MPI_Finalize();
    return 0;
}
