/* hang_threads CASE: ranks with several threads, which hang for each other, each function a case. With MPI_THREAD_MULTIPLE. Ends only when it
 * is killed, but for `none`, in which nobody hangs: all go on until they are killed. Two ranks.
 *
 * Calls per rank: Init_thread, Comm_rank 1; then by case. */
#include "../gate.h"

#include <mpi.h>
#include <pthread.h>
#include <string.h>

static int rank, value;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int has_it;
static volatile unsigned long turns;

static void *receives(void *nothing) {
    int never;
    MPI_Recv(&never, 1, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return nothing;
}

static void *probes(void *nothing) {
    MPI_Probe(1 - rank, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return nothing;
}

static void *receives_with_lock(void *nothing) {
    pthread_mutex_lock(&mutex);
    has_it = 1;
    return receives(nothing);
}

static void second(void *(*does)(void *)) {
    pthread_t thread;
    pthread_create(&thread, NULL, does, NULL);
}

/* Rank 0's first thread waits for a lock that its second one has, which waits for rank 1. */
static void lock(void) {
    if (rank == 0) {
        second(receives_with_lock);
        while (!has_it)
            usleep(1000);
        pthread_mutex_lock(&mutex);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0's first thread waits for the ends of two others. */
static void ends(void) {
    pthread_t threads[2];
    if (rank == 0) {
        pthread_create(&threads[0], NULL, receives, NULL);
        pthread_create(&threads[1], NULL, probes, NULL);
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static __attribute__((noinline)) void update(void) {
    for (;;)
        turns++;
}

/* Rank 0's first thread may yet send what rank 1 waits for. */
static void one_computes(void) {
    if (rank == 0) {
        second(receives);
        update();
    }
    MPI_Recv(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void *sends(void *nothing) {
    for (;;)
        MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, 3, &value, 1, MPI_INT, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return nothing;
}

static void none(void) {
    int sum;
    second(sends);
    for (;;)
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*hang)(void);
} cases[] = {{"lock", lock}, {"ends", ends}, {"one-computes", one_computes}, {"none", none}};

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE)
        return 3;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gate(1);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc > 1 && strcmp(argv[1], cases[i].name) == 0)
            cases[i].hang();
    MPI_Finalize();
    return 0;
}
