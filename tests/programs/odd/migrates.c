/* migrates [N]: a user-level thread that goes on on another kernel thread inside an MPI call, as threading libraries do that move
 * their threads. N times (default 10) it deletes an attribute from MPI_COMM_SELF, whose delete callback gives the kernel thread up;
 * the other kernel thread takes the user-level thread over, and the call returns there.
 *
 * Calls per rank: Init_thread, Comm_rank, Comm_create_keyval, Comm_free_keyval, Barrier, Finalize 1; Comm_set_attr N,
 * Comm_delete_attr N; as inner calls Comm_size N.
 *
 * Gate: 1 after MPI_Init_thread. */
#define _GNU_SOURCE
#include "../gate.h"

#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { STACK = 1 << 20 };

static int count, right, is_done;
static ucontext_t user, kernel[2];
/* Which kernel thread runs the user-level thread now. */
static volatile int running;
static sem_t turn[2];

static int deleted(MPI_Comm communicator, int keyval, void *value, void *state) {
    int size = 0;
    (void)communicator, (void)keyval, (void)value, (void)state;
    swapcontext(&user, &kernel[running]);
    MPI_Comm_size(MPI_COMM_SELF, &size);
    right += size == 1;
    return MPI_SUCCESS;
}

static void run(void) {
    int keyval, rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gate(1);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &keyval, NULL);
    for (int i = 0; i < count; i++) {
        MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &count);
        MPI_Comm_delete_attr(MPI_COMM_SELF, keyval);
    }
    MPI_Comm_free_keyval(&keyval);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("migrates: %d of %d right\n", right, count);
    is_done = 1;
    swapcontext(&user, &kernel[running]);
}

/* Takes turns in running the user-level thread. */
static void *take_turns(void *number) {
    const int own = *(int *)number;
    for (;;) {
        sem_wait(&turn[own]);
        if (!is_done) {
            running = own;
            swapcontext(&kernel[own], &user);
        }
        sem_post(&turn[1 - own]);
        if (is_done)
            return NULL;
    }
}

int main(int argc, char **argv) {
    int provided, numbers[2] = {0, 1};
    count = argc > 1 ? atoi(argv[1]) : 10;
    /* One kernel thread at a time calls MPI. */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    getcontext(&user);
    user.uc_stack.ss_sp = malloc(STACK);
    user.uc_stack.ss_size = STACK;
    makecontext(&user, run, 0);
    sem_init(&turn[0], 0, 1);
    sem_init(&turn[1], 0, 0);
    pthread_t other;
    if (pthread_create(&other, NULL, take_turns, &numbers[1]) != 0)
        return 2;
    take_turns(&numbers[0]);
    pthread_join(other, NULL);
    MPI_Finalize();
    return right == count ? 0 : 1;
}
