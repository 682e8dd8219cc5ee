/* hang_polls CASE: ranks that ask MPI again and again for what never comes, each function a case. Ends only when it is killed. In `ping-pong`,
 * `counts`, `clock`, `memory` and `elsewhere` ranks ask as well, and go on by themselves, if late. Three ranks.
 *
 * Calls per rank: Init, Comm_rank; then by case. */
#include "../gate.h"

#include <mpi.h>
#include <string.h>

static int rank, value, other, flag, at, number, places[2];
static MPI_Request one, both[2];
static MPI_Status status;
static volatile int shared;

static void test(void) {
    if (rank == 0) {
        MPI_Irecv(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &one);
        while (!flag)
            MPI_Test(&one, &flag, MPI_STATUS_IGNORE);
    }
    if (rank == 1)
        MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Nobody has sent what rank 0 asks for, and rank 1 has sent something else. */
static void iprobe(void) {
    int found = 0;
    if (rank == 0)
        do
            MPI_Iprobe(1, 2, MPI_COMM_WORLD, &found, &status);
        while (!found);
    if (rank == 1)
        MPI_Ssend(&value, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void iprobe_any(void) {
    int found = 0;
    if (rank == 0)
        while (!found)
            MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &found, &status);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void post_both(void) {
    MPI_Irecv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &both[0]);
    MPI_Irecv(&other, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, &both[1]);
}

static void testall(void) {
    if (rank == 0) {
        post_both();
        while (!flag)
            MPI_Testall(2, both, &flag, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void testany(void) {
    if (rank == 0) {
        post_both();
        while (!flag)
            MPI_Testany(2, both, &at, &flag, &status);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void testsome(void) {
    if (rank == 0) {
        post_both();
        while (number == 0)
            MPI_Testsome(2, both, &number, places, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* All of them do, round in a circle, and keep what they have asked for on their stacks. */
static void get_status(void) {
    int done = 0;
    MPI_Request mine;
    MPI_Irecv(&value, 1, MPI_INT, (rank + 1) % 3, 5, MPI_COMM_WORLD, &mine);
    while (!done)
        MPI_Request_get_status(mine, &done, MPI_STATUS_IGNORE);
    MPI_Wait(&mine, MPI_STATUS_IGNORE);
}

/* Who asks waits for somebody who does not come. */
static void missing(void) {
    if (rank == 0) {
        MPI_Irecv(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &one);
        while (!flag)
            MPI_Test(&one, &flag, MPI_STATUS_IGNORE);
    }
    while (rank == 1)
        shared++;
    MPI_Barrier(MPI_COMM_WORLD);
    other++;
}

/* Always at the same places. */
static void ping_pong(void) {
    while (rank < 2) {
        MPI_Irecv(&value, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, &one);
        if (rank == 0)
            MPI_Send(&other, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
        for (flag = 0; !flag;)
            MPI_Test(&one, &flag, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(&other, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Of these, rank 0 sends in the end what rank 1 waits for. */
static void then_send(void) {
    if (rank == 0)
        MPI_Send(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void counts(void) {
    if (rank == 0) {
        MPI_Irecv(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &one);
        for (long left = 1L << 60; left > 0 && !flag; left--)
            MPI_Test(&one, &flag, MPI_STATUS_IGNORE);
    }
    then_send();
}

static void until_clock(void) {
    if (rank == 0) {
        double end = MPI_Wtime() + 1e6;
        MPI_Irecv(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &one);
        while (!flag && MPI_Wtime() < end)
            MPI_Test(&one, &flag, MPI_STATUS_IGNORE);
    }
    then_send();
}

/* It asks only so that MPI gets on with what others do with its memory. */
static void memory(void) {
    if (rank == 0)
        while (!shared)
            MPI_Iprobe(1, 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    then_send();
}

/* One after the other, at one place. */
static void elsewhere(void) {
    if (rank == 0)
        for (at = 0; !flag; at = (at + 1) % 3)
            MPI_Iprobe(at, 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    then_send();
}

static const struct {
    const char *name;
    void (*hang)(void);
} cases[] = {
    {"test", test},
    {"iprobe", iprobe},
    {"iprobe-any", iprobe_any},
    {"testall", testall},
    {"testany", testany},
    {"testsome", testsome},
    {"get-status", get_status},
    {"missing", missing},
    {"ping-pong", ping_pong},
    {"counts", counts},
    {"clock", until_clock},
    {"memory", memory},
    {"elsewhere", elsewhere},
};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gate(1);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc > 1 && strcmp(argv[1], cases[i].name) == 0)
            cases[i].hang();
    MPI_Finalize();
    return 0;
}
