/* Calls that complete very many requests, those of receives from anybody among them, and start very many. */
#include "semantics.h"

enum { KNOWN = 1200, ANY = 300, STARTED = 1100 };

static int out[KNOWN + ANY], in[KNOWN + ANY];
static MPI_Request posted[2 * (KNOWN + ANY)];
static MPI_Status statuses[2 * (KNOWN + ANY)];

static void use(void) {
    int number = 0;
    for (int i = 0; i < KNOWN; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, left, 0, MPI_COMM_WORLD, &posted[number++]);
    for (int i = 0; i < ANY; i++)
        MPI_Irecv(&in[KNOWN + i], 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &posted[number++]);
    fill(out, KNOWN + ANY, rank, 1);
    for (int i = 0; i < KNOWN; i++)
        MPI_Isend(&out[i], 1, MPI_INT, right, 0, MPI_COMM_WORLD, &posted[number++]);
    for (int i = 0; i < ANY; i++)
        MPI_Isend(&out[KNOWN + i], 1, MPI_INT, i % 2 ? right : left, 1, MPI_COMM_WORLD, &posted[number++]);
    MPI_Waitall(number, posted, statuses);
    check(in, KNOWN, left, 1);

    for (int i = 0; i < STARTED; i++)
        MPI_Recv_init(&in[i], 1, MPI_INT, left, 0, MPI_COMM_WORLD, &posted[i]);
    MPI_Startall(STARTED, posted);
    for (int i = 0; i < STARTED; i++)
        MPI_Send(&out[i], 1, MPI_INT, right, 0, MPI_COMM_WORLD);
    MPI_Waitall(STARTED, posted, MPI_STATUSES_IGNORE);
    for (int i = 0; i < STARTED; i++)
        MPI_Request_free(&posted[i]);
}

const struct section many = {"many", NULL, use, NULL};
