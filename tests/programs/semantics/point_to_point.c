/* Blocking messages: modes, sizes below what was posted, wildcards, ignored statuses, nobody at the other end, probes. */
#include "semantics.h"

static int out[32], in[32];

static void modes(void) {
    double values[3] = {rank, 1.5, 2.5}, got[4];
    char attached[1000], five[5] = "abcd", arrived[5];
    short seven[7] = {(short)rank}, seen[7];
    MPI_Status status;
    MPI_Request request;
    int size;

    fill(out, 10, rank, 1);
    IN_TURNS(MPI_Send(out, 10, MPI_INT, right, 1, MPI_COMM_WORLD),
             MPI_Recv(in, 16, MPI_INT, left, 1, MPI_COMM_WORLD, &status));
    check(in, 10, left, 1);

    IN_TURNS(MPI_Ssend(values, 3, MPI_DOUBLE, right, 2, MPI_COMM_WORLD),
             MPI_Recv(got, 4, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    EXPECT(got[0] == left && got[2] == 2.5);

    MPI_Buffer_attach(attached, sizeof attached);
    MPI_Bsend(five, 5, MPI_CHAR, right, 3, MPI_COMM_WORLD);
    MPI_Recv(arrived, 5, MPI_CHAR, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &status);
    EXPECT(strcmp(arrived, "abcd") == 0 && status.MPI_SOURCE == left);
    void *detached;
    MPI_Buffer_detach(&detached, &size);

    MPI_Irecv(seen, 7, MPI_SHORT, left, 4, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Rsend(seven, 7, MPI_SHORT, right, 4, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(seen[0] == left);
}

static void unknown_source(void) {
    fill(out, 2, rank, 5);
    IN_TURNS(MPI_Send(out, 2, MPI_INT, right, 5, MPI_COMM_WORLD),
             MPI_Recv(in, 6, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    check(in, 2, left, 5);
    /* Any tag: a barrier before and after keeps other messages away. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Status status;
    IN_TURNS(MPI_Send(out, 1, MPI_INT, right, 77, MPI_COMM_WORLD),
             MPI_Recv(in, 6, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    EXPECT(status.MPI_SOURCE == left && status.MPI_TAG == 77);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void nobody(void) {
    MPI_Status status;
    MPI_Message message;
    int found;
    MPI_Send(out, 32, MPI_INT, MPI_PROC_NULL, 6, MPI_COMM_WORLD);
    MPI_Recv(in, 32, MPI_INT, MPI_PROC_NULL, 6, MPI_COMM_WORLD, &status);
    EXPECT(status.MPI_SOURCE == MPI_PROC_NULL);
    MPI_Sendrecv(out, 8, MPI_INT, MPI_PROC_NULL, 6, in, 8, MPI_INT, MPI_PROC_NULL, 6, MPI_COMM_WORLD, &status);
    MPI_Mprobe(MPI_PROC_NULL, 6, MPI_COMM_WORLD, &message, &status);
    EXPECT(message == MPI_MESSAGE_NO_PROC);
    MPI_Mrecv(in, 32, MPI_INT, &message, &status);
    MPI_Iprobe(MPI_PROC_NULL, 6, MPI_COMM_WORLD, &found, &status);
    EXPECT(found);
}

static void exchanges(void) {
    double four[4] = {rank, 1, 2, 3};
    MPI_Status status;
    fill(out, 9, rank, 7);
    MPI_Sendrecv(out, 9, MPI_INT, right, 7, in, 12, MPI_INT, left, 7, MPI_COMM_WORLD, &status);
    check(in, 9, left, 7);
    MPI_Sendrecv_replace(four, 4, MPI_DOUBLE, partner, 8, partner, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT(four[0] == partner);
    /* A chain: nobody before the first and after the last. */
    int before = rank == 0 ? MPI_PROC_NULL : rank - 1, after = rank == 3 ? MPI_PROC_NULL : rank + 1;
    fill(out, 3, rank, 9);
    MPI_Sendrecv(out, 3, MPI_INT, after, 9, in, 5, MPI_INT, before, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank > 0)
        check(in, 3, left, 9);
    /* Of different types, and the source a wildcard. */
    MPI_Sendrecv(out, 3, MPI_INT, right, 10, in, 20, MPI_BYTE, MPI_ANY_SOURCE, 10, MPI_COMM_WORLD, &status);
    EXPECT(status.MPI_SOURCE == left);
}

static void probes(void) {
    MPI_Status status;
    MPI_Message message;
    int count;
    fill(out, 11, rank, 11);
    IN_TURNS(MPI_Send(out, 11, MPI_INT, right, 11, MPI_COMM_WORLD), {
        MPI_Probe(MPI_ANY_SOURCE, 11, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        MPI_Recv(in, count, MPI_INT, status.MPI_SOURCE, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
    check(in, 11, left, 11);
    IN_TURNS(MPI_Send(out, 13, MPI_BYTE, right, 12, MPI_COMM_WORLD), {
        MPI_Mprobe(left, 12, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(in, 20, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    });
    IN_TURNS(MPI_Send(out, 4, MPI_INT, right, 13, MPI_COMM_WORLD), {
        MPI_Mprobe(MPI_ANY_SOURCE, 13, MPI_COMM_WORLD, &message, &status);
        MPI_Mrecv(in, 4, MPI_INT, &message, &status);
    });
    EXPECT(status.MPI_SOURCE == left);
}

static void nothing(void) {
    MPI_Status status;
    IN_TURNS(MPI_Send(NULL, 0, MPI_INT, right, 14, MPI_COMM_WORLD),
             MPI_Recv(in, 5, MPI_INT, left, 14, MPI_COMM_WORLD, &status));
    int count;
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT(count == 0);
}

static void with_itself(void) {
    MPI_Status status;
    fill(out, 2, rank, 15);
    MPI_Sendrecv(out, 1, MPI_INT, rank, 15, in, 1, MPI_INT, rank, 15, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(out, 2, MPI_INT, 0, 16, in, 2, MPI_INT, 0, 16, MPI_COMM_SELF, &status);
    check(in, 2, rank, 15);
}

static void use(void) {
    modes();
    unknown_source();
    nobody();
    exchanges();
    probes();
    nothing();
    with_itself();
}

const struct section point_to_point = {"point-to-point", NULL, use, NULL};
