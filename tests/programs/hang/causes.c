/* causes CASE: ranks that hang in one of many ways, each function a case. Ends only when it is killed, but for `none`, in which nobody
 * hangs: all go on until they are killed; and `ping-pong`, in which two do, always at the same places. Three ranks.
 *
 * Calls per rank: Init, Comm_rank, Comm_size, Comm_split, Comm_dup 1, Comm_set_name 2; then by case. */
#include "../gate.h"

#include <mpi.h>
#include <signal.h>
#include <string.h>

enum { LARGE = 1 << 20 };

static int rank, size, value, other, gathered[3];
static char large[LARGE];
static MPI_Comm twin, half;
static const int right[] = {1, 2, 0}, left[] = {2, 0, 1};

static void ring(void) {
    MPI_Recv(&value, 1, MPI_INT, (rank + size - 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void sends(void) {
    if (rank < 2)
        MPI_Send(large, LARGE, MPI_CHAR, 1 - rank, 3, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void other_tag(void) {
    if (rank == 0)
        MPI_Recv(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Ssend(&value, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void other_communicator(void) {
    if (rank == 0)
        MPI_Recv(&value, 1, MPI_INT, 1, 5, twin, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Ssend(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void other_partner(void) {
    if (rank == 0)
        MPI_Recv(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Ssend(&value, 1, MPI_INT, 2, 5, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void different_collectives(void) {
    if (rank == 0)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(&rank, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void different_roots(void) {
    MPI_Bcast(large, LARGE, MPI_CHAR, rank, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void different_order(void) {
    if (rank == 0)
        MPI_Barrier(twin);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(twin);
}

/* Ranks 0 and 2 are in one half, rank 1 in the other. */
static void half_of_them(void) {
    if (rank == 2)
        MPI_Recv(&value, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(half);
    MPI_Allreduce(&rank, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void missing_root(void) {
    if (rank == 0)
        MPI_Recv(&value, 1, MPI_INT, 2, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

static void missing_sender(void) {
    if (rank == 2)
        MPI_Recv(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Reduce(&rank, &value, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void finalize(void) {
    if (rank == 0)
        MPI_Recv(&value, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void finalize_barrier(void) {
    if (rank == 2)
        MPI_Barrier(MPI_COMM_WORLD);
}

static void itself(void) {
    if (rank == 0)
        MPI_Recv(&value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Ssend(&value, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void probe(void) {
    static const int from[] = {1, 0, 0};
    MPI_Probe(from[rank], 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void split(void) {
    MPI_Comm made;
    if (rank == 1)
        MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &made);
}

static void window(void) {
    MPI_Win made;
    if (rank == 2)
        MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &made);
}

static void stopped(void) {
    if (rank == 1)
        raise(SIGSTOP);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void requests(void) {
    MPI_Request both[2];
    if (rank == 0) {
        MPI_Irecv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &both[0]);
        MPI_Irecv(&other, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void never_started(void) {
    MPI_Request request;
    if (rank == 0)
        MPI_Recv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send_init(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void anybody(void) {
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Whom from and with which tag only its caller has decided. */
static __attribute__((noipa)) void receive_from(int source, int tag) {
    MPI_Recv(&value, 1, MPI_INT, source, tag, twin, MPI_STATUS_IGNORE);
    other++;
}

static void passed(void) {
    int source = (rank + size - 1) % size;
    MPI_Barrier(twin);
    receive_from(source, 31);
    other++;
}

/* The root waits for one of the two; which, only they tell. */
static void gather(void) {
    if (rank == 1)
        MPI_Recv(&value, 1, MPI_INT, 2, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Gather(&rank, 1, MPI_INT, gathered, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void none(void) {
    for (;;) {
        MPI_Sendrecv(&value, 1, MPI_INT, right[rank], 4, &other, 1, MPI_INT, left[rank], 4, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Barrier(half);
        MPI_Bcast(large, LARGE, MPI_CHAR, 0, twin);
    }
}

/* Nothing that is on the stack ever changes. */
static void ping_pong(void) {
    while (rank == 0) {
        MPI_Send(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    while (rank == 1) {
        MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*hang)(void);
} cases[] = {
    {"ring", ring},
    {"sends", sends},
    {"other-tag", other_tag},
    {"other-communicator", other_communicator},
    {"other-partner", other_partner},
    {"different-collectives", different_collectives},
    {"different-roots", different_roots},
    {"different-order", different_order},
    {"half", half_of_them},
    {"missing-root", missing_root},
    {"missing-sender", missing_sender},
    {"finalize", finalize},
    {"finalize-barrier", finalize_barrier},
    {"itself", itself},
    {"probe", probe},
    {"split", split},
    {"window", window},
    {"stopped", stopped},
    {"requests", requests},
    {"never-started", never_started},
    {"anybody", anybody},
    {"passed", passed},
    {"gather", gather},
    {"none", none},
    {"ping-pong", ping_pong},
};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    MPI_Comm_set_name(half, "half");
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_set_name(twin, "twin");
    gate(1);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc > 1 && strcmp(argv[1], cases[i].name) == 0)
            cases[i].hang();
    MPI_Finalize();
    return 0;
}
