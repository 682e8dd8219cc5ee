/* floods [THREADS]: so many threads (default 20,000), one after the other, that end inside a call, each of which is a notice to whoever
 * observes.
 *
 * Calls per rank: Init_thread, Comm_create_errhandler, Comm_set_errhandler, Finalize 1, Comm_call_errhandler THREADS, none of which
 * returns. Gates: 1 after MPI_Init_thread, 2 after the threads. */
#include "../gate.h"

#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

static void end(MPI_Comm *communicator, int *code, ...) {
    (void)communicator, (void)code;
    pthread_exit(NULL);
}

static void *call(void *nothing) {
    MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_OTHER);
    return nothing;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 20000, provided;
    MPI_Errhandler handler;
    pthread_attr_t small;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_create_errhandler(end, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 18);
    gate(1);
    for (int i = 0; i < threads; i++) {
        if (pthread_create(&thread, &small, call, NULL) != 0 || pthread_join(thread, NULL) != 0)
            return 1;
    }
    gate(2);
    MPI_Finalize();
    return 0;
}
