/* Wait*, Test*: each Test is called once and followed by a Wait, so that no count depends on how fast a message came. */
#include "groups.h"

static int in[4], out;
static MPI_Request requests[4];

static void exchange(void) {
    out = rank;
    CALL(MPI_Irecv)(&in[0], 1, MPI_INT, left, 50, MPI_COMM_WORLD, &requests[0]);
    CALL(MPI_Irecv)(&in[1], 1, MPI_INT, right, 51, MPI_COMM_WORLD, &requests[1]);
    CALL(MPI_Isend)(&out, 1, MPI_INT, right, 50, MPI_COMM_WORLD, &requests[2]);
    CALL(MPI_Isend)(&out, 1, MPI_INT, left, 51, MPI_COMM_WORLD, &requests[3]);
}

/* Waiting for requests that are complete already is allowed: they are MPI_REQUEST_NULL then. */
static void finish(void) {
    CALL(MPI_Waitall)(4, requests, MPI_STATUSES_IGNORE);
    EXPECT(in[0] == left && in[1] == right);
}

void completion(void) {
    int index, flag, finished, indices[4];
    MPI_Status status, statuses[4];

    exchange();
    for (int i = 0; i < 4; i++)
        CALL(MPI_Wait)(&requests[i], &status);
    finish();

    exchange();
    for (int i = 0; i < 4; i++) {
        CALL(MPI_Waitany)(4, requests, &index, &status);
        EXPECT(index >= 0 && index < 4);
    }
    CALL(MPI_Waitany)(4, requests, &index, &status);
    EXPECT(index == MPI_UNDEFINED);
    finish();

    exchange();
    CALL(MPI_Waitsome)(4, requests, &finished, indices, statuses);
    EXPECT(finished >= 1);
    finish();

    exchange();
    CALL(MPI_Test)(&requests[0], &flag, &status);
    CALL(MPI_Testany)(4, requests, &index, &flag, &status);
    CALL(MPI_Testsome)(4, requests, &finished, indices, statuses);
    CALL(MPI_Testall)(4, requests, &flag, statuses);
    finish();
    CALL(MPI_Testall)(4, requests, &flag, MPI_STATUSES_IGNORE);
    EXPECT(flag);

    exchange();
    CALL(MPI_Request_get_status)(requests[0], &flag, MPI_STATUS_IGNORE);
    finish();
}
