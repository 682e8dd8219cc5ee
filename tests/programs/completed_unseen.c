/* completed_unseen: two ranks, whose operations are completed by calls that are not counted: while counting is off, and inside other calls.
 *
 * Of each rank after gate 1, with the other one: 9 Irecv into 100 bytes, 5 Isend and 4 Send of 80 bytes that arrive there; a persistent receive and a
 * persistent send of the same, started twice each. All of them are complete at the end.
 * Gate: 1 after MPI_Init. */
#include "gate.h"

#include <mpi.h>

static char in[100], out[80];
static int partner, waited;
static MPI_Request awaited;
static MPI_Comm copy;

static void wait_for_it(void) {
    MPI_Wait(&awaited, MPI_STATUS_IGNORE);
    waited++;
}

static void at_error(MPI_Comm *comm, int *error, ...) {
    (void)comm, (void)error;
    wait_for_it();
}

static int at_deletion(MPI_Comm comm, int keyval, void *value, void *state) {
    (void)comm, (void)keyval, (void)value, (void)state;
    wait_for_it();
    return MPI_SUCCESS;
}

/* A receive that some function waits for which MPI calls. */
static void exchange(void) {
    MPI_Irecv(in, 100, MPI_CHAR, partner, 1, MPI_COMM_WORLD, &awaited);
    MPI_Send(out, 80, MPI_CHAR, partner, 1, MPI_COMM_WORLD);
}

static void while_off(void) {
    MPI_Request requests[2];
    for (int i = 0; i < 5; i++) {
        MPI_Irecv(in, 100, MPI_CHAR, partner, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, 80, MPI_CHAR, partner, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Pcontrol(0);
        if (i % 2 == 0) {
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        } else {
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        }
        MPI_Pcontrol(1);
    }
    MPI_Recv_init(in, 100, MPI_CHAR, partner, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(out, 80, MPI_CHAR, partner, 0, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 2; i++) {
        MPI_Startall(2, requests);
        MPI_Pcontrol(0);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Pcontrol(1);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void inside(void) {
    int keyval;
    MPI_Errhandler handler;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_create_errhandler(at_error, &handler);
    MPI_Comm_set_errhandler(copy, handler);
    MPI_Errhandler_free(&handler);
    exchange();
    MPI_Send(out, 80, MPI_CHAR, 99, 1, copy);
    exchange();
    MPI_Bcast(out, 1, MPI_CHAR, 99, copy);

    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_deletion, &keyval, NULL);
    MPI_Comm_set_attr(copy, keyval, NULL);
    exchange();
    MPI_Comm_delete_attr(copy, keyval);
    MPI_Comm_free(&copy);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
    MPI_Comm_free_keyval(&keyval);
    exchange();
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &partner);
    partner ^= 1;
    gate(1);
    while_off();
    inside();
    MPI_Finalize();
    return waited == 4 ? 0 : 1;
}
