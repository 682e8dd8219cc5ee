/* lengths [N]: calls of known length, each length by functions of its own, for the benchmark of times. Two ranks, which take turns
 * to be waited for; N is 200 by default.
 *
 * Calls per rank, by what one takes:
 *   tens of ns     Test 50 N (of no request)
 *   hundreds of ns Iprobe 50 N, Sendrecv 50 N (8 bytes, with itself)
 *   some µs        Allreduce 5 N (16 KiB, alone)
 *   tens of µs     Sendrecv_replace N (256 KiB, with itself)
 *   hundreds of µs Send N/2 of one rank, Recv N/2 of the other (waits for 200 µs)
 *   1 ms           Barrier N/10 (of which every other one waits)
 * and, by nothing, Init, Comm_rank, Finalize 1. */
#include "gate.h"

#include <mpi.h>
#include <string.h>
#include <time.h>

static char block[256 * 1024], small[16 * 1024], sum[16 * 1024];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void compute(double seconds) {
    double end = now() + seconds;
    while (now() < end) {
    }
}

static void short_calls(int turns) {
    long out = 1, in;
    int found;
    for (int i = 0; i < turns; i++) {
        MPI_Request none = MPI_REQUEST_NULL;
        MPI_Test(&none, &found, MPI_STATUS_IGNORE);
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&out, 1, MPI_LONG, 0, 1, &in, 1, MPI_LONG, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    }
}

static void longer_calls(int turns) {
    for (int i = 0; i < turns; i++) {
        for (int j = 0; j < 5; j++)
            MPI_Allreduce(small, sum, sizeof small, MPI_CHAR, MPI_MAX, MPI_COMM_SELF);
        MPI_Sendrecv_replace(block, sizeof block, MPI_CHAR, 0, 2, 0, 2, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    }
}

static void waits(int rank, int turns) {
    long out = 1, in;
    for (int i = 0; i < turns; i++) {
        if (i % 2 == rank) {
            compute(200e-6);
            MPI_Send(&out, 1, MPI_LONG, 1 - rank, 3, MPI_COMM_WORLD);
        } else {
            MPI_Recv(&in, 1, MPI_LONG, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    for (int i = 0; i < turns / 10; i++) {
        if (i % 2 == rank)
            compute(1e-3);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    int rank, turns = argc > 1 ? atoi(argv[1]) : 200;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memset(block, 1, sizeof block);
    short_calls(50 * turns);
    longer_calls(turns);
    waits(rank, turns);
    MPI_Finalize();
    return 0;
}
