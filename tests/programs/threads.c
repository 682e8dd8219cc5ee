/* threads [T [N]]:       T threads per rank (default 4), each exchanging N messages (default 100) with its twin on the
 *                        partner rank (rank xor 1), all at once under MPI_THREAD_MULTIPLE.
 * threads --short-lived T: T threads per rank one after the other, four at a time, each sending itself one message. For tools
 *                        that keep something per thread: thousands come and go.
 *
 * Calls per rank: Init_thread, Comm_rank, Finalize 1; Send, Recv T * N, or Sendrecv T if short-lived. An even number of ranks.
 * Gates: 1 after MPI_Init_thread, 2 before MPI_Finalize. Exit status 1 on a wrong message. */
#include "gate.h"

#include <mpi.h>
#include <pthread.h>
#include <string.h>

static int rank, messages = 100;

static void *exchange(void *argument) {
    int tag = (int)(long)argument, partner = rank ^ 1;
    for (int i = 0; i < messages; i++) {
        int out = rank * 1000 + tag + i, in = -1;
        /* The lower rank sends first, so that nothing depends on buffering. */
        if (rank < partner)
            MPI_Send(&out, 1, MPI_INT, partner, tag, MPI_COMM_WORLD);
        MPI_Recv(&in, 1, MPI_INT, partner, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank > partner)
            MPI_Send(&out, 1, MPI_INT, partner, tag, MPI_COMM_WORLD);
        if (in != partner * 1000 + tag + i) {
            fprintf(stderr, "threads: rank %d, thread %d, message %d: wrong value %d\n", rank, tag, i, in);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    return NULL;
}

static void *one_message(void *argument) {
    int tag = (int)(long)argument % 1000, out = tag, in = -1;
    MPI_Sendrecv(&out, 1, MPI_INT, 0, tag, &in, 1, MPI_INT, 0, tag, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    if (in != out) {
        fprintf(stderr, "threads: rank %d: wrong value %d\n", rank, in);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return NULL;
}

/* Runs threads first … first + count - 1 at once. */
static void run(void *(*body)(void *), int first, int count) {
    pthread_t threads[64];
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, body, (void *)(long)(first + i)) != 0)
            abort();
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv) {
    int short_lived = argc > 1 && strcmp(argv[1], "--short-lived") == 0, provided;
    char **numbers = argv + short_lived;
    int threads = argc > 1 + short_lived ? atoi(numbers[1]) : 4;
    if (short_lived)
        messages = 1;
    else if (argc > 2)
        messages = atoi(numbers[2]);
    if (!short_lived && threads > 64)
        return 2;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (provided < MPI_THREAD_MULTIPLE) {
        fprintf(stderr, "threads: this MPI does not provide MPI_THREAD_MULTIPLE\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    gate(1);
    int at_once = short_lived ? 4 : threads;
    for (int first = 0; first < threads; first += at_once)
        run(short_lived ? one_message : exchange, first, threads - first < at_once ? threads - first : at_once);
    gate(2);
    MPI_Finalize();
    if (rank == 0)
        printf("threads: %d threads, %d messages each, all correct\n", threads, messages);
    return 0;
}
