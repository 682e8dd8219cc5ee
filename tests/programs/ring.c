/* ring [iterations] [options]: messages round a ring of ranks, each checked by its receiver. The demo, and the first test.
 *
 *   --pause-us N  compute for N microseconds in each iteration
 *   --imbalance   rank r computes r + 1 times as long
 *   --announce    rank 0 says `ring: begun` after the first iteration
 *   --forever     no end, unless a test asks for it (stop_requested)
 *
 * Calls per rank for N iterations: Init, Comm_rank, Comm_size, Bcast, Finalize 1; Send, Recv, Isend, Irecv, Waitall,
 * Sendrecv, Allreduce N; Barrier in every tenth iteration. Gates: 1 after MPI_Init, 2 before iteration N / 2 (without
 * --forever), 3 before MPI_Finalize. Exit status 1 on a wrong message, 2 on wrong usage. */
#include "gate.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LARGE = 64 * 1024 / sizeof(int), MEDIUM = 4096 / sizeof(int) };

static int rank, size;

static void expect(long got, long wanted, const char *what, long iteration) {
    if (got == wanted)
        return;
    fprintf(stderr, "ring: rank %d, iteration %ld: %s is %ld, not %ld\n", rank, iteration, what, got, wanted);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int word(int sender, long iteration, int position) {
    return (int)(sender * 1000003 + iteration * 7919 + position);
}

static void fill(int *buffer, int count, long iteration) {
    for (int i = 0; i < count; i++)
        buffer[i] = word(rank, iteration, i);
}

static void verify(const int *buffer, int count, int sender, long iteration, const char *what) {
    for (int i = 0; i < count; i++)
        expect(buffer[i], word(sender, iteration, i), what, iteration);
}

static void compute(long microseconds) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 < microseconds);
}

int main(int argc, char **argv) {
    long options[3] = {100, 0, 0}; /* iterations, pause in microseconds, forever */
    int imbalance = 0, announce = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--imbalance") == 0)
            imbalance = 1;
        else if (strcmp(argv[i], "--announce") == 0)
            announce = 1;
        else if (strcmp(argv[i], "--forever") == 0)
            options[2] = 1;
        else if (strcmp(argv[i], "--pause-us") == 0 && i + 1 < argc)
            options[1] = atol(argv[++i]);
        else if (argv[i][0] != '-' && atol(argv[i]) > 0)
            options[0] = atol(argv[i]);
        else {
            fprintf(stderr, "ring: unknown option %s\n", argv[i]);
            return 2;
        }
    }

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gate(1);
    MPI_Bcast(options, 3, MPI_LONG, 0, MPI_COMM_WORLD);

    static int out[LARGE], in[LARGE];
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    long iteration = 0, stop = 0;
    while (!stop && (options[2] || iteration < options[0])) {
        if (!options[2] && iteration == options[0] / 2)
            gate(2);
        if (options[1] > 0)
            compute(options[1] * (imbalance ? rank + 1 : 1));

        /* Eight bytes go round: rank 0 starts them, each rank adds one. */
        long token = iteration;
        if (rank == 0)
            MPI_Send(&token, 1, MPI_LONG, right, 1, MPI_COMM_WORLD);
        MPI_Recv(&token, 1, MPI_LONG, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(token, iteration + (rank + size - 1) % size, "token", iteration);
        token++;
        if (rank != 0)
            MPI_Send(&token, 1, MPI_LONG, right, 1, MPI_COMM_WORLD);

        MPI_Request requests[2];
        fill(out, LARGE, iteration);
        MPI_Irecv(in, LARGE, MPI_INT, left, 2, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, LARGE, MPI_INT, right, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        verify(in, LARGE, left, iteration, "word of 64 KiB");

        fill(out, MEDIUM, iteration);
        MPI_Sendrecv(out, MEDIUM, MPI_INT, left, 3, in, MEDIUM, MPI_INT, right, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        verify(in, MEDIUM, right, iteration, "word of 4 KiB");

        long mine[2] = {rank + iteration, rank == 0 && options[2] && stop_requested()};
        long sum[2];
        MPI_Allreduce(mine, sum, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        expect(sum[0], size * (size - 1) / 2 + size * iteration, "sum", iteration);
        stop = sum[1];
        if (announce && rank == 0 && iteration == 0) {
            puts("ring: begun");
            fflush(stdout);
        }

        if (iteration % 10 == 9)
            MPI_Barrier(MPI_COMM_WORLD);
        iteration++;
    }

    gate(3);
    MPI_Finalize();
    if (rank == 0)
        printf("ring: %d ranks, %ld iterations, all messages correct\n", size, iteration);
    return 0;
}
