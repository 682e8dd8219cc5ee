/* Nonblocking and persistent messages, and every way to complete them. */
#include "semantics.h"

static int out[64], in[8][16];
static MPI_Request persistent[4];
static MPI_Datatype pair;

static void one_by_one(void) {
    MPI_Request request, sending;
    MPI_Status status;
    int done = 0;
    fill(out, 8, rank, 1);
    MPI_Irecv(in[0], 16, MPI_INT, left, 1, MPI_COMM_WORLD, &request);
    MPI_Issend(out, 8, MPI_INT, right, 1, MPI_COMM_WORLD, &sending);
    MPI_Wait(&request, &status);
    MPI_Wait(&sending, MPI_STATUS_IGNORE);
    check(in[0], 8, left, 1);

    MPI_Irecv(in[0], 16, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &request);
    MPI_Isend(out, 3, MPI_INT, right, 2, MPI_COMM_WORLD, &sending);
    while (!done)
        MPI_Test(&request, &done, &status);
    EXPECT(request == MPI_REQUEST_NULL && status.MPI_SOURCE == left);
    MPI_Wait(&request, &status); /* of nothing */
    MPI_Wait(&sending, &status);

    char attached[1000];
    int size;
    void *detached;
    MPI_Buffer_attach(attached, sizeof attached);
    MPI_Irecv(in[0], 16, MPI_INT, left, 3, MPI_COMM_WORLD, &request);
    MPI_Ibsend(out, 2, MPI_INT, right, 3, MPI_COMM_WORLD, &sending);
    MPI_Wait(&sending, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Buffer_detach(&detached, &size);
    MPI_Irecv(in[0], 16, MPI_INT, left, 4, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Irsend(out, 5, MPI_INT, right, 4, MPI_COMM_WORLD, &sending);
    MPI_Wait(&sending, MPI_STATUS_IGNORE);
    done = 0;
    /* Completes nothing. Less and less often, as the other rank may wait for a processor: a log of all these calls has to have room. */
    for (useconds_t pause = 1; !done; pause += pause < 10000 ? pause : 0) {
        MPI_Request_get_status(request, &done, &status);
        if (!done)
            usleep(pause);
    }
    MPI_Wait(&request, &status);
}

/* Four receives and four sends, i + 1 words each, with holes in the array of requests. */
static void begin_many(MPI_Request *requests, int tag, int source) {
    for (int i = 0; i < 10; i++)
        requests[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < 4; i++)
        MPI_Irecv(in[i], 16, MPI_INT, source, tag + i, MPI_COMM_WORLD, &requests[2 * i]);
    for (int i = 0; i < 4; i++)
        MPI_Isend(out, i + 1, MPI_INT, right, tag + i, MPI_COMM_WORLD, &requests[2 * i + 1]);
}

static void several(void) {
    MPI_Request requests[10];
    MPI_Status statuses[10], status;
    int indices[10], index, count, done, completed;

    begin_many(requests, 10, left);
    MPI_Waitall(10, requests, statuses);
    EXPECT(statuses[6].MPI_SOURCE == left && statuses[6].MPI_TAG == 13);
    begin_many(requests, 20, MPI_ANY_SOURCE);
    MPI_Waitall(10, requests, MPI_STATUSES_IGNORE);

    begin_many(requests, 30, left);
    for (int i = 0; i < 8; i++) {
        MPI_Waitany(10, requests, &index, i % 2 ? MPI_STATUS_IGNORE : &status);
        EXPECT(index >= 0 && index < 8 && requests[index] == MPI_REQUEST_NULL);
    }
    MPI_Waitany(10, requests, &index, &status);
    EXPECT(index == MPI_UNDEFINED);

    begin_many(requests, 40, left);
    for (completed = 0; completed < 8; completed += count)
        MPI_Waitsome(10, requests, &count, indices, completed < 3 ? statuses : MPI_STATUSES_IGNORE);
    MPI_Waitsome(10, requests, &count, indices, statuses);
    EXPECT(count == MPI_UNDEFINED);

    begin_many(requests, 50, left);
    for (done = 0; !done;)
        MPI_Testall(10, requests, &done, statuses);
    MPI_Testall(10, requests, &done, MPI_STATUSES_IGNORE);
    EXPECT(done);

    begin_many(requests, 60, MPI_ANY_SOURCE);
    for (completed = 0; completed < 8; completed += done) {
        MPI_Testany(10, requests, &index, &done, &status);
        EXPECT(!done || index != MPI_UNDEFINED);
    }
    MPI_Testany(10, requests, &index, &done, MPI_STATUS_IGNORE);
    EXPECT(done && index == MPI_UNDEFINED);

    begin_many(requests, 70, left);
    for (completed = 0; completed < 8; completed += count)
        MPI_Testsome(10, requests, &count, indices, statuses);
    for (int i = 0; i < 4; i++)
        EXPECT(in[i][0] == left * 100000 + 1000);
}

/* Small messages that are sent at once: a library may give the same request for all of them. */
static void many_at_once(void) {
    enum { MESSAGES = 100 };
    MPI_Request requests[2 * MESSAGES];
    int words[MESSAGES];
    for (int i = 0; i < MESSAGES; i++)
        MPI_Irecv(&words[i], 1, MPI_INT, left, i, MPI_COMM_WORLD, &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < MESSAGES; i++)
        MPI_Isend(&out[0], 1, MPI_INT, right, i, MPI_COMM_WORLD, &requests[MESSAGES + i]);
    MPI_Waitall(2 * MESSAGES, requests, MPI_STATUSES_IGNORE);
}

static void nobody(void) {
    MPI_Request requests[4];
    MPI_Irecv(in[0], 4, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 4, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(in[0], 4, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Recv_init(in[0], 4, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Start(&requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[3]);
}

static void matched(void) {
    MPI_Request requests[2];
    MPI_Message message;
    MPI_Status status;
    int found = 0;
    MPI_Isend(out, 6, MPI_INT, right, 80, MPI_COMM_WORLD, &requests[0]);
    while (!found)
        MPI_Improbe(MPI_ANY_SOURCE, 80, MPI_COMM_WORLD, &found, &message, &status);
    MPI_Imrecv(in[0], 16, MPI_INT, &message, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check(in[0], 6, left, 1);
}

/* The peer must be known when the communicator is gone. */
static void communicator_freed(void) {
    MPI_Comm reversed;
    MPI_Request requests[2];
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Irecv(in[0], 16, MPI_INT, MPI_ANY_SOURCE, 1, reversed, &requests[0]);
    MPI_Barrier(reversed);
    MPI_Isend(out, 2, MPI_INT, 3 - right, 1, reversed, &requests[1]);
    MPI_Comm_free(&reversed);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check(in[0], 2, left, 1);
}

static void given_up(void) {
    MPI_Request request, sending;
    MPI_Status status;
    int cancelled;
    MPI_Irecv(in[0], 16, MPI_INT, left, 90, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    EXPECT(cancelled);
    /* Nobody waits for these two; a third message tells that they have arrived. */
    MPI_Irecv(in[1], 16, MPI_INT, left, 91, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(out, 3, MPI_INT, right, 91, MPI_COMM_WORLD, &sending);
    MPI_Request_free(&sending);
    MPI_Sendrecv(out, 4, MPI_INT, right, 91, in[2], 4, MPI_INT, left, 91, MPI_COMM_WORLD, &status);
    check(in[1], 3, left, 1);
}

static void make_persistent(MPI_Request *requests, int tag) {
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Recv_init(in[4], 5, pair, left, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(in[5], 5, pair, MPI_ANY_SOURCE, tag + 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Send_init(out, 4, pair, right, tag, MPI_COMM_WORLD, &requests[2]);
    MPI_Ssend_init(out, 3, pair, right, tag + 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Type_free(&pair);
}

static void use_persistent(MPI_Request *requests) {
    MPI_Status statuses[4];
    int index, done;
    fill(out, 8, rank, 1);
    MPI_Startall(4, requests);
    MPI_Waitall(4, requests, statuses);
    EXPECT(statuses[1].MPI_SOURCE == left);
    check(in[4], 8, left, 1);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE); /* all inactive */
    for (int i = 0; i < 4; i++)
        MPI_Start(&requests[i]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    /* The second pair only; the first is inactive meanwhile. */
    MPI_Startall(2, &requests[2]);
    MPI_Start(&requests[0]);
    MPI_Start(&requests[1]);
    for (int i = 0; i < 4; i++) {
        MPI_Waitany(4, requests, &index, MPI_STATUS_IGNORE);
        EXPECT(index >= 0 && index < 4);
    }
    MPI_Waitany(4, requests, &index, MPI_STATUS_IGNORE);
    MPI_Testall(4, requests, &done, MPI_STATUSES_IGNORE);
    EXPECT(index == MPI_UNDEFINED && done);
}

static void more_persistent(void) {
    char attached[1000];
    int size;
    void *detached;
    MPI_Request requests[3];
    MPI_Buffer_attach(attached, sizeof attached);
    MPI_Recv_init(in[6], 16, MPI_INT, left, 95, MPI_COMM_WORLD, &requests[0]);
    MPI_Bsend_init(out, 6, MPI_INT, right, 95, MPI_COMM_WORLD, &requests[1]);
    MPI_Rsend_init(out, 7, MPI_INT, right, 95, MPI_COMM_WORLD, &requests[2]);
    for (int i = 1; i <= 2; i++) {
        MPI_Start(&requests[0]);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Start(&requests[i]);
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int i = 0; i < 3; i++)
        MPI_Request_free(&requests[i]);
    MPI_Buffer_detach(&detached, &size);
}

static void make(void) {
    make_persistent(persistent, 100);
}

static void use(void) {
    one_by_one();
    several();
    many_at_once();
    nobody();
    matched();
    communicator_freed();
    given_up();
    use_persistent(persistent);
    MPI_Request own[4];
    make_persistent(own, 110);
    use_persistent(own);
    for (int i = 0; i < 4; i++)
        MPI_Request_free(&own[i]);
    more_persistent();
}

static void release(void) {
    for (int i = 0; i < 4; i++)
        MPI_Request_free(&persistent[i]);
}

const struct section requests = {"requests", make, use, release};
