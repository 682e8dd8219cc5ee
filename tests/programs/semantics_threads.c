/* semantics_threads [T [N]]: T threads per rank (default 4, at most 16) exchange messages round the ring at once, N times (default
 * 50) each. Thread t, in each round:
 *
 *   over its own communicator "thread t": MPI_Sendrecv of t + 1 ints, MPI_Allreduce of one long
 *   over the world, with tag t: MPI_Isend of t + 2 ints, MPI_Irecv from anybody of up to 32, completed by MPI_Waitall, or by
 *   MPI_Test, which asks some times before MPI_Wait
 *   over the world, with tag 100 + t: MPI_Isend of one element of a type of its own of 1 to 5 ints, MPI_Recv of 8 ints
 *   over its own communicator: MPI_Recv_init and MPI_Send_init of t + 3 ints, started and completed in every other round, MPI_Request_free
 *
 * so that handles of requests and types are used again by other threads at once. Gates: 1 after MPI_Init_thread, 2 when the
 * communicators exist, 3 before they are freed. Exit status 1 on wrong data. */
#include "gate.h"

#include <mpi.h>
#include <pthread.h>

enum { MOST = 16, ASKED_AT_MOST = 100 };

static int rank, right, left, rounds = 50;
static MPI_Comm own[MOST];

static void expect(int holds, int thread, int round) {
    if (holds)
        return;
    fprintf(stderr, "semantics_threads: rank %d, thread %d, round %d: wrong data\n", rank, thread, round);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void complete(int round, MPI_Request *requests) {
    MPI_Status status;
    if (round % 2 == 0) {
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        return;
    }
    for (int i = 0; i < 2; i++) {
        int done = 0;
        for (int asked = 0; !done && asked < ASKED_AT_MOST; asked++)
            MPI_Test(&requests[i], &done, &status);
        if (!done)
            MPI_Wait(&requests[i], &status);
    }
}

/* The requests that are freed are not active, and their handles other threads' at once. */
static void persistent(int thread, int round, int *out, int *in) {
    MPI_Request requests[2];
    MPI_Recv_init(in, 32, MPI_INT, left, 1, own[thread], &requests[0]);
    MPI_Send_init(out, thread + 3, MPI_INT, right, 1, own[thread], &requests[1]);
    if (round % 2 == 0) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        expect(in[thread + 2] == left * 100000 + thread * 1000 + round, thread, round);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void *exchange(void *argument) {
    int thread = (int)(long)argument, out[32], in[32];
    for (int round = 0; round < rounds; round++) {
        MPI_Request requests[2];
        MPI_Datatype type;
        long one = round, sum;
        for (int i = 0; i < 32; i++)
            out[i] = rank * 100000 + thread * 1000 + round;
        MPI_Sendrecv(out, thread + 1, MPI_INT, right, 0, in, 32, MPI_INT, left, 0, own[thread], MPI_STATUS_IGNORE);
        expect(in[thread] == left * 100000 + thread * 1000 + round, thread, round);
        MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, own[thread]);
        expect(sum == 4 * round, thread, round);

        MPI_Irecv(in, 32, MPI_INT, MPI_ANY_SOURCE, thread, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, thread + 2, MPI_INT, right, thread, MPI_COMM_WORLD, &requests[1]);
        complete(round, requests);
        expect(in[thread + 1] == left * 100000 + thread * 1000 + round, thread, round);

        MPI_Type_contiguous(round % 5 + 1, MPI_INT, &type);
        MPI_Type_commit(&type);
        MPI_Isend(out, 1, type, right, 100 + thread, MPI_COMM_WORLD, &requests[0]);
        MPI_Type_free(&type);
        MPI_Recv(in, 8, MPI_INT, left, 100 + thread, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        persistent(thread, round, out, in);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 4, provided;
    pthread_t running[MOST];
    char name[32];
    if (argc > 2)
        rounds = atoi(argv[2]);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (provided < MPI_THREAD_MULTIPLE || threads > MOST)
        MPI_Abort(MPI_COMM_WORLD, 2);
    right = (rank + 1) % 4;
    left = (rank + 3) % 4;
    gate(1);
    for (int i = 0; i < threads; i++) {
        snprintf(name, sizeof name, "thread %d", i);
        MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
        MPI_Comm_set_name(own[i], name);
    }
    gate(2);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&running[i], NULL, exchange, (void *)(long)i) != 0)
            abort();
    for (int i = 0; i < threads; i++)
        pthread_join(running[i], NULL);
    gate(3);
    for (int i = 0; i < threads; i++)
        MPI_Comm_free(&own[i]);
    MPI_Finalize();
    if (rank == 0)
        printf("semantics_threads: all data correct\n");
    return 0;
}
