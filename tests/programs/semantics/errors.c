/* Invariant ERRORS-JUDGED. */
/* Calls that return an error and have completed requests all the same: some, or all; those that have failed, and those that have not. */
#include "semantics.h"

static int out[16], in[4][16];
static MPI_Request persistent;

static void make(void) {
    MPI_Recv_init(in[3], 2, MPI_INT, left, 60, MPI_COMM_WORLD, &persistent);
}

/* `count` receives from the left, each of 2 words; of what is sent to the right, number `longer` has 4. Complete when all have arrived:
 * messages of one sender do not overtake each other. */
static void begin(MPI_Request *requests, int count, int longer, int tag) {
    for (int i = 0; i < count; i++)
        MPI_Irecv(in[i], 2, MPI_INT, left, tag + i, MPI_COMM_WORLD, &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
        MPI_Send(out, i == longer ? 4 : 2, MPI_INT, right, tag + i, MPI_COMM_WORLD);
    MPI_Sendrecv(out, 1, MPI_INT, right, 99, in[3], 1, MPI_INT, left, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void alone(void) {
    MPI_Request request;
    MPI_Status status;
    int done = 0;
    begin(&request, 1, 0, 10);
    EXPECT(MPI_Wait(&request, &status) != MPI_SUCCESS && request == MPI_REQUEST_NULL);
    begin(&request, 1, 0, 11);
    EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS && request == MPI_REQUEST_NULL);
    begin(&request, 1, 0, 12);
    while (request != MPI_REQUEST_NULL)
        MPI_Test(&request, &done, &status);
}

static void together(void) {
    MPI_Request requests[4];
    MPI_Status statuses[4];
    int indices[3], index, count, done = 0;
    begin(requests, 3, 1, 20);
    requests[3] = MPI_REQUEST_NULL;
    EXPECT(MPI_Waitall(4, requests, statuses) == MPI_ERR_IN_STATUS);
    EXPECT(statuses[0].MPI_ERROR == MPI_SUCCESS && statuses[1].MPI_ERROR != MPI_SUCCESS);
    for (int i = 0; i < 3; i++) /* a library may leave the last one to another call */
        if (requests[i] != MPI_REQUEST_NULL)
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);

    begin(requests, 3, 2, 30);
    for (int i = 0; i < 3; i++)
        MPI_Waitany(3, requests, &index, &statuses[0]);
    begin(requests, 3, 0, 40);
    while (requests[0] != MPI_REQUEST_NULL || requests[1] != MPI_REQUEST_NULL || requests[2] != MPI_REQUEST_NULL)
        MPI_Waitsome(3, requests, &count, indices, statuses);
    begin(requests, 2, 0, 50);
    while (requests[0] != MPI_REQUEST_NULL || requests[1] != MPI_REQUEST_NULL)
        MPI_Testall(2, requests, &done, statuses);
}

/* A request that is started again after it has failed, unless the library has freed it (Open MPI does). */
static void again(void) {
    MPI_Status status;
    for (int words = 4; words > 0 && persistent != MPI_REQUEST_NULL; words -= 3) {
        MPI_Start(&persistent);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send(out, words, MPI_INT, right, 60, MPI_COMM_WORLD);
        EXPECT((MPI_Wait(&persistent, &status) == MPI_SUCCESS) == (words <= 2));
    }
}

static void use(void) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    fill(out, 16, rank, 1);
    alone();
    together();
    again();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void release(void) {
    if (persistent != MPI_REQUEST_NULL)
        MPI_Request_free(&persistent);
}

const struct section errors = {"errors", make, use, release};
