/* communicator_threads: two threads per rank make communicators at once, each out of its own one, in whatever order they come.
 *
 * In each of ROUNDS rounds, thread t duplicates its communicator, which has the members of the other thread's, and over the duplicate calls
 * MPI_Sendrecv of t + 1 ints round the ring, and MPI_Allreduce (t = 0) or MPI_Barrier (t = 1). Duplicates are freed at the end. Exit status 1 if
 * MPI has no MPI_THREAD_MULTIPLE. */
#include <mpi.h>
#include <pthread.h>

enum { THREADS = 2, ROUNDS = 30 };

static int rank, size;
static MPI_Comm own[THREADS];

static void *work(void *argument) {
    int thread = (int)(long)argument, out[THREADS] = {rank, rank}, in[THREADS], sum;
    MPI_Comm copies[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm_dup(own[thread], &copies[round]);
        MPI_Sendrecv(out, thread + 1, MPI_INT, (rank + 1) % size, 0, in, thread + 1, MPI_INT, (rank + size - 1) % size, 0, copies[round],
                     MPI_STATUS_IGNORE);
        if (thread == 0)
            MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, copies[round]);
        else
            MPI_Barrier(copies[round]);
    }
    for (int round = 0; round < ROUNDS; round++)
        MPI_Comm_free(&copies[round]);
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int thread = 0; thread < THREADS; thread++)
        MPI_Comm_dup(MPI_COMM_WORLD, &own[thread]);
    for (long thread = 0; thread < THREADS; thread++)
        pthread_create(&threads[thread], NULL, work, (void *)thread);
    for (int thread = 0; thread < THREADS; thread++)
        pthread_join(threads[thread], NULL);
    MPI_Finalize();
}
