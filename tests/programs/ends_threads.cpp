// ends_threads [N]: N threads (default 10), one after the other, each of which sends to an invalid rank. The error handler ends the thread from
// within MPI_Send, which unwinds it: what stands around the call is cleaned up.
//
// Calls per rank: Init_thread, Comm_rank, Comm_create_errhandler, Comm_set_errhandler, Errhandler_free, Barrier, Finalize 1; Send N,
// none of them completed. Gate: 1 after MPI_Init_thread.
#include "gate.h"

#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <pthread.h>

static int cleaned;

struct Guard {
    ~Guard() { cleaned++; }
};

static void leave(MPI_Comm *, int *, ...) {
    pthread_exit(nullptr);
}

static void *work(void *) {
    Guard guard;
    int nothing = 0;
    MPI_Send(&nothing, 1, MPI_INT, 1000000, 0, MPI_COMM_WORLD);
    return nullptr;
}

int main(int argc, char **argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 10;
    int rank, provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gate(1);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, nullptr, work, nullptr) != 0)
            return 1;
        pthread_join(thread, nullptr);
    }
    MPI_Errhandler_free(&handler);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0)
        std::printf("ends_threads: %d threads cleaned up\n", cleaned);
    return cleaned == threads ? 0 : 1;
}
