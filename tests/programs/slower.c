/* slower [N [PERMILLE [compute]]]: a program of N rounds (100 by default) that can be slower in one function of one rank: MPI_Recv of
 * rank 1 takes PERMILLE thousandths more (0 by default), because rank 0 has so much more to do before it sends. Two ranks.
 *
 * What a rank does outside MPI takes a known time by the clock, as if a device had to answer; with `compute`, a known number of steps
 * of a processor, which takes as long as the processor's other users leave it.
 *
 * A round, of which nothing overlaps:
 *   rank 0 works 2 ms and then calls Send, rank 1 is in Recv
 *   rank 1 works 1 ms and then calls Send, rank 0 is in Irecv and Wait
 *   rank 1 works 1 ms, rank 0 is in Allreduce
 *   rank 0 works 1 ms, rank 1 is in Bcast
 *   rank 1 works 1 ms, rank 0 is in Barrier
 * and once, Init, Comm_rank, Comm_dup, Comm_free, Finalize. */
#include "gate.h"

#include <mpi.h>
#include <string.h>
#include <time.h>

/* Steps of a millisecond, about. */
enum { STEPS = 600000 };

static int computes;
/* Made by a call in which both ranks wait for each other, however long each took to start. */
static MPI_Comm all;

static void work(long microseconds) {
    if (computes) {
        volatile unsigned long state = 1;
        for (long step = 0; step < STEPS / 1000 * microseconds; step++)
            state = state * 6364136223846793005 + 1442695040888963407;
    } else {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += microseconds * 1000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
        }
    }
}

static void messages(int rank, long slower) {
    long out = 1, in;
    MPI_Request request;
    if (rank == 0) {
        work(2000 + slower);
        MPI_Send(&out, 1, MPI_LONG, 1, 1, all);
        MPI_Irecv(&in, 1, MPI_LONG, 1, 2, all, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&in, 1, MPI_LONG, 0, 1, all, MPI_STATUS_IGNORE);
        work(1000);
        MPI_Send(&out, 1, MPI_LONG, 0, 2, all);
    }
}

static void together(int rank) {
    double own = rank, sum;
    if (rank == 1)
        work(1000);
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, all);
    if (rank == 0)
        work(1000);
    MPI_Bcast(&own, 1, MPI_DOUBLE, 0, all);
    if (rank == 1)
        work(1000);
    MPI_Barrier(all);
}

int main(int argc, char **argv) {
    int rank;
    long rounds = argc > 1 ? atol(argv[1]) : 100, permille = argc > 2 ? atol(argv[2]) : 0;
    computes = argc > 3 && strcmp(argv[3], "compute") == 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    for (long round = 0; round < rounds; round++) {
        messages(rank, 2 * permille);
        together(rank);
    }
    MPI_Comm_free(&all);
    MPI_Finalize();
    return 0;
}
