/* hang_groups CASE: ranks that hang over communicators of two groups, of parts of a communicator, and with neighbours, each function a case.
 * Ends only when it is killed, but for `none`, in which nobody hangs: all go on until they are killed. Four ranks, of which 0 and 1 are one
 * group and 2 and 3 the other.
 *
 * Calls per rank: Init, Comm_rank, Comm_split, Intercomm_create, Comm_set_name; then by case. */
#include "../gate.h"

#include <mpi.h>
#include <string.h>

static int rank, value, other, around[4];
static const int others[] = {2, 2, 0, 0};
static MPI_Comm own, between, ring, made;
static MPI_Group some;

/* Ranks are those of the other group: 0 is rank 2 for rank 0, and rank 0 for rank 2. */
static void messages(void) {
    if (rank == 0)
        MPI_Recv(&value, 1, MPI_INT, 1, 5, between, MPI_STATUS_IGNORE);
    if (rank == 3)
        MPI_Recv(&value, 1, MPI_INT, 0, 5, between, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void other_tag(void) {
    if (rank == 1)
        MPI_Ssend(&value, 1, MPI_INT, 0, 6, between);
    if (rank == 2)
        MPI_Recv(&value, 1, MPI_INT, 1, 5, between, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void any_of_them(void) {
    if (rank == 0)
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 5, between, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void barrier(void) {
    if (rank == 3)
        MPI_Recv(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(between);
}

static void neighbours(void) {
    static const int all[] = {4}, periodic[] = {1};
    MPI_Cart_create(MPI_COMM_WORLD, 1, all, periodic, 0, &ring);
    MPI_Comm_set_name(ring, "ring");
    if (rank == 2)
        MPI_Recv(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, around, 1, MPI_INT, ring);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 3 has no neighbour, and rank 0 is one of rank 1 only. */
static void graph(void) {
    static const int ends[] = {1, 3, 4, 4}, edges[] = {1, 0, 2, 1};
    MPI_Graph_create(MPI_COMM_WORLD, 4, ends, edges, 0, &ring);
    MPI_Comm_set_name(ring, "graph");
    if (rank == 2)
        MPI_Recv(&value, 1, MPI_INT, 3, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Neighbor_alltoall(around, 1, MPI_INT, around + 2, 1, MPI_INT, ring);
    MPI_Barrier(MPI_COMM_WORLD);
}

static __attribute__((noinline)) void lower(void) {
    MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, 2, 7, &made);
}

static __attribute__((noinline)) void upper(void) {
    MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, 0, 7, &made);
}

static void create(void) {
    if (rank == 3)
        MPI_Recv(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank < 2)
        lower();
    else
        upper();
}

static void leader(void) {
    if (rank == 2)
        MPI_Recv(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank < 2)
        lower();
    if (rank == 2)
        upper();
    MPI_Barrier(MPI_COMM_WORLD);
}

static void merge(void) {
    if (rank == 1)
        MPI_Recv(&value, 1, MPI_INT, 2, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Intercomm_merge(between, rank < 2, &made);
}

/* Rank 1 is not in it. */
static void create_group(void) {
    static const int members[] = {0, 2, 3};
    MPI_Group all;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 3, members, &some);
    if (rank == 3)
        MPI_Recv(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank != 1)
        MPI_Comm_create_group(MPI_COMM_WORLD, some, 8, &made);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void none(void) {
    static const int all[] = {4}, periodic[] = {1};
    MPI_Cart_create(MPI_COMM_WORLD, 1, all, periodic, 0, &ring);
    for (;;) {
        MPI_Sendrecv(&value, 1, MPI_INT, rank % 2, 4, &other, 1, MPI_INT, rank % 2, 4, between, MPI_STATUS_IGNORE);
        MPI_Neighbor_allgather(&rank, 1, MPI_INT, around, 1, MPI_INT, ring);
        MPI_Barrier(between);
        MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, others[rank], 7, &made);
        MPI_Comm_free(&made);
    }
}

static const struct {
    const char *name;
    void (*hang)(void);
} cases[] = {
    {"messages", messages},
    {"other-tag", other_tag},
    {"any-of-them", any_of_them},
    {"barrier", barrier},
    {"neighbours", neighbours},
    {"graph", graph},
    {"create", create},
    {"leader", leader},
    {"merge", merge},
    {"create-group", create_group},
    {"none", none},
};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, 0, &own);
    MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, others[rank], 7, &between);
    MPI_Comm_set_name(between, "between");
    gate(1);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc > 1 && strcmp(argv[1], cases[i].name) == 0)
            cases[i].hang();
    MPI_Finalize();
    return 0;
}
