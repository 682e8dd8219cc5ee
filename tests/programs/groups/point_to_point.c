/* Send modes, persistent requests, probes, matched probes, wildcards, MPI_PROC_NULL, cancel. */
#include "groups.h"

static void receive(int tag) {
    int in = -1;
    MPI_Status status;
    CALL(MPI_Recv)(&in, 1, MPI_INT, left, tag, MPI_COMM_WORLD, &status);
    EXPECT(in == left * 10 + tag && status.MPI_SOURCE == left && status.MPI_TAG == tag);
}

static void finish(MPI_Request *request, const int *in, int tag) {
    CALL(MPI_Wait)(request, MPI_STATUS_IGNORE);
    EXPECT(*in == left * 10 + tag);
}

static void modes(void) {
    char buffer[1000 + MPI_BSEND_OVERHEAD], *detached;
    int out, in, detached_size;
    MPI_Request request, sent;

    /* The lower of each pair sends first; with four ranks in a ring, even ranks send first. */
    out = rank * 10 + 1;
    if (rank % 2 == 0)
        CALL(MPI_Send)(&out, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
    receive(1);
    if (rank % 2 == 1)
        CALL(MPI_Send)(&out, 1, MPI_INT, right, 1, MPI_COMM_WORLD);

    out = rank * 10 + 2;
    if (rank % 2 == 0)
        CALL(MPI_Ssend)(&out, 1, MPI_INT, right, 2, MPI_COMM_WORLD);
    receive(2);
    if (rank % 2 == 1)
        CALL(MPI_Ssend)(&out, 1, MPI_INT, right, 2, MPI_COMM_WORLD);

    out = rank * 10 + 3;
    CALL(MPI_Buffer_attach)(buffer, sizeof buffer);
    CALL(MPI_Bsend)(&out, 1, MPI_INT, right, 3, MPI_COMM_WORLD);
    receive(3);
    out = rank * 10 + 4;
    CALL(MPI_Ibsend)(&out, 1, MPI_INT, right, 4, MPI_COMM_WORLD, &sent);
    receive(4);
    CALL(MPI_Wait)(&sent, MPI_STATUS_IGNORE);
    CALL(MPI_Buffer_detach)(&detached, &detached_size);
    EXPECT(detached == buffer && detached_size == sizeof buffer);

    /* Ready mode: the barrier sees to it that the receive is posted. */
    out = rank * 10 + 5;
    CALL(MPI_Irecv)(&in, 1, MPI_INT, left, 5, MPI_COMM_WORLD, &request);
    CALL(MPI_Barrier)(MPI_COMM_WORLD);
    CALL(MPI_Rsend)(&out, 1, MPI_INT, right, 5, MPI_COMM_WORLD);
    finish(&request, &in, 5);
    out = rank * 10 + 6;
    CALL(MPI_Irecv)(&in, 1, MPI_INT, left, 6, MPI_COMM_WORLD, &request);
    CALL(MPI_Barrier)(MPI_COMM_WORLD);
    CALL(MPI_Irsend)(&out, 1, MPI_INT, right, 6, MPI_COMM_WORLD, &sent);
    finish(&request, &in, 6);
    CALL(MPI_Wait)(&sent, MPI_STATUS_IGNORE);

    out = rank * 10 + 7;
    CALL(MPI_Isend)(&out, 1, MPI_INT, right, 7, MPI_COMM_WORLD, &sent);
    receive(7);
    CALL(MPI_Wait)(&sent, MPI_STATUS_IGNORE);
    out = rank * 10 + 8;
    CALL(MPI_Issend)(&out, 1, MPI_INT, right, 8, MPI_COMM_WORLD, &sent);
    receive(8);
    CALL(MPI_Wait)(&sent, MPI_STATUS_IGNORE);

    out = rank * 10 + 9;
    CALL(MPI_Sendrecv)(&out, 1, MPI_INT, right, 9, &in, 1, MPI_INT, left, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT(in == left * 10 + 9);
    CALL(MPI_Sendrecv_replace)(&out, 1, MPI_INT, right, 9, left, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT(out == left * 10 + 9);
}

static void persistent(void) {
    char buffer[1000 + MPI_BSEND_OVERHEAD], *detached;
    int out = 0, in, detached_size;
    MPI_Request sends[4], receives;
    CALL(MPI_Buffer_attach)(buffer, sizeof buffer);
    CALL(MPI_Recv_init)(&in, 1, MPI_INT, left, MPI_ANY_TAG, MPI_COMM_WORLD, &receives);
    CALL(MPI_Send_init)(&out, 1, MPI_INT, right, 20, MPI_COMM_WORLD, &sends[0]);
    CALL(MPI_Ssend_init)(&out, 1, MPI_INT, right, 21, MPI_COMM_WORLD, &sends[1]);
    CALL(MPI_Bsend_init)(&out, 1, MPI_INT, right, 22, MPI_COMM_WORLD, &sends[2]);
    CALL(MPI_Rsend_init)(&out, 1, MPI_INT, right, 23, MPI_COMM_WORLD, &sends[3]);
    for (int mode = 0; mode < 4; mode++) {
        MPI_Request both[2] = {receives, sends[mode]};
        out = rank * 10 + 20 + mode;
        if (mode % 2 == 0) {
            CALL(MPI_Startall)(2, both);
        } else {
            CALL(MPI_Start)(&both[0]);
            CALL(MPI_Barrier)(MPI_COMM_WORLD);
            CALL(MPI_Start)(&both[1]);
        }
        CALL(MPI_Waitall)(2, both, MPI_STATUSES_IGNORE);
        EXPECT(in == left * 10 + 20 + mode);
        CALL(MPI_Request_free)(&sends[mode]);
    }
    CALL(MPI_Request_free)(&receives);
    CALL(MPI_Buffer_detach)(&detached, &detached_size);
}

static void probes(void) {
    int out = rank * 10 + 30, in, flag, count;
    MPI_Status status;
    MPI_Message message;
    MPI_Request requests[3], request;
    for (int i = 0; i < 3; i++)
        CALL(MPI_Isend)(&out, 1, MPI_INT, right, 30 + i, MPI_COMM_WORLD, &requests[i]);

    CALL(MPI_Probe)(left, 30, MPI_COMM_WORLD, &status);
    CALL(MPI_Iprobe)(left, 30, MPI_COMM_WORLD, &flag, &status);
    CALL(MPI_Get_count)(&status, MPI_INT, &count);
    EXPECT(flag && count == 1);
    CALL(MPI_Recv)(&in, 1, MPI_INT, left, 30, MPI_COMM_WORLD, &status);
    EXPECT(in == left * 10 + 30);

    in = -1;
    CALL(MPI_Mprobe)(left, 31, MPI_COMM_WORLD, &message, &status);
    CALL(MPI_Mrecv)(&in, 1, MPI_INT, &message, &status);
    EXPECT(in == left * 10 + 30);

    in = -1;
    CALL(MPI_Probe)(left, 32, MPI_COMM_WORLD, &status);
    CALL(MPI_Improbe)(left, 32, MPI_COMM_WORLD, &flag, &message, &status);
    EXPECT(flag);
    CALL(MPI_Imrecv)(&in, 1, MPI_INT, &message, &request);
    CALL(MPI_Wait)(&request, &status);
    CALL(MPI_Get_elements)(&status, MPI_INT, &count);
    EXPECT(in == left * 10 + 30 && count == 1);
    CALL(MPI_Waitall)(3, requests, MPI_STATUSES_IGNORE);
}

static void special_peers(void) {
    int out = rank * 10 + 40, in = -1, flag;
    MPI_Status status;
    MPI_Request request;
    /* Nobody else uses this tag, and only the left neighbour sends here. */
    CALL(MPI_Isend)(&out, 1, MPI_INT, right, 40, MPI_COMM_WORLD, &request);
    CALL(MPI_Recv)(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    EXPECT(in == left * 10 + 40 && status.MPI_SOURCE == left && status.MPI_TAG == 40);
    CALL(MPI_Wait)(&request, MPI_STATUS_IGNORE);

    CALL(MPI_Send)(&out, 1, MPI_INT, MPI_PROC_NULL, 41, MPI_COMM_WORLD);
    CALL(MPI_Recv)(&in, 1, MPI_INT, MPI_PROC_NULL, 41, MPI_COMM_WORLD, &status);
    EXPECT(status.MPI_SOURCE == MPI_PROC_NULL);
    CALL(MPI_Send)(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 41, MPI_COMM_WORLD);

    CALL(MPI_Irecv)(&in, 1, MPI_INT, left, 42, MPI_COMM_WORLD, &request);
    CALL(MPI_Cancel)(&request);
    CALL(MPI_Wait)(&request, &status);
    CALL(MPI_Test_cancelled)(&status, &flag);
    EXPECT(flag);
}

void point_to_point(void) {
    modes();
    persistent();
    probes();
    special_peers();
    CALL(MPI_Barrier)(MPI_COMM_WORLD);
}
