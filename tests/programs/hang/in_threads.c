/* in_threads: of two ranks, rank 0's second thread waits in MPI_Recv, its third in MPI_Probe, and its first for both of them; rank 1 waits
 * in MPI_Barrier. With MPI_THREAD_MULTIPLE. Ends only when it is killed.
 *
 * Calls per rank: Init_thread, Comm_rank 1; then open for ever as above. */
#include "../gate.h"

#include <mpi.h>
#include <pthread.h>

static void *receives(void *nothing) {
    int never;
    MPI_Recv(&never, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return nothing;
}

static void *probes(void *nothing) {
    MPI_Probe(1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return nothing;
}

int main(int argc, char **argv) {
    int rank, provided;
    pthread_t threads[2];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE)
        return 3;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gate(1);
    if (rank == 0) {
        pthread_create(&threads[0], NULL, receives, NULL);
        pthread_create(&threads[1], NULL, probes, NULL);
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
