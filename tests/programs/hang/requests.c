/* hang_requests CASE: ranks that hang in calls that wait for requests, each function a case. Ends only when it is killed, but for `none`, in
 * which nobody hangs: all go on until they are killed. Three ranks.
 *
 * Calls per rank: Init, Comm_rank, Comm_size, Comm_dup, Comm_set_name 1; then by case. */
#include "../gate.h"

#include <mpi.h>
#include <string.h>

enum { LARGE = 1 << 20 };

static int rank, size, value, other, third;
static char large[LARGE];
static MPI_Comm twin;
static MPI_Request all[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};

static int left(void) {
    return (rank + size - 1) % size;
}

static int right(void) {
    return (rank + 1) % size;
}

/* Everybody receives and nobody sends. */
static void halo(void) {
    MPI_Irecv(&value, 1, MPI_INT, left(), 4, twin, &all[0]);
    MPI_Irecv(&other, 1, MPI_INT, right(), 4, twin, &all[1]);
    MPI_Waitall(2, all, MPI_STATUSES_IGNORE);
}

static void any_of_two(void) {
    int index;
    if (rank == 0) {
        MPI_Irecv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &all[0]);
        MPI_Irecv(&other, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, &all[1]);
        MPI_Waitany(2, all, &index, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void from_anybody(void) {
    if (rank == 1) {
        MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, twin, &all[0]);
        MPI_Wait(&all[0], MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* One of two has come. */
static void one_is_missing(void) {
    if (rank == 0) {
        MPI_Irecv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &all[0]);
        MPI_Irecv(&other, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, &all[1]);
        MPI_Waitall(2, all, MPI_STATUSES_IGNORE);
    }
    if (rank == 1)
        MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The receive that is waited for is not the one that is met. */
static void not_that_one(void) {
    if (rank == 0) {
        MPI_Irecv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &all[0]);
        MPI_Irecv(&other, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, &all[2]);
        MPI_Waitall(2, all, MPI_STATUSES_IGNORE);
    }
    if (rank == 1)
        MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 2)
        MPI_Recv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void barrier(void) {
    if (rank == 1)
        MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Ibarrier(twin, &all[0]);
    MPI_Wait(&all[0], MPI_STATUS_IGNORE);
}

/* The others have taken part in the collective operation that they wait for. */
static void barrier_without_one(void) {
    if (rank == 2)
        MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Ibarrier(twin, &all[0]);
    MPI_Wait(&all[0], MPI_STATUS_IGNORE);
}

static void persistent(void) {
    if (rank == 0) {
        MPI_Recv_init(&value, 1, MPI_INT, 2, 6, twin, &all[0]);
        MPI_Start(&all[0]);
        MPI_Wait(&all[0], MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void other_tag(void) {
    if (rank == 0) {
        MPI_Irecv(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &all[0]);
        MPI_Wait(&all[0], MPI_STATUS_IGNORE);
    }
    if (rank == 1)
        MPI_Ssend(&value, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A send that nobody receives. */
static void large_send(void) {
    if (rank == 0) {
        MPI_Isend(large, LARGE, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &all[0]);
        MPI_Wait(&all[0], MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Tags that do not meet, all round. */
static void exchange(void) {
    MPI_Sendrecv(large, LARGE, MPI_CHAR, right(), rank, &third, 1, MPI_INT, left(), 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void none(void) {
    for (;;) {
        MPI_Irecv(&value, 1, MPI_INT, left(), 4, twin, &all[0]);
        MPI_Isend(&rank, 1, MPI_INT, right(), 4, twin, &all[1]);
        MPI_Ibarrier(twin, &all[2]);
        MPI_Waitall(3, all, MPI_STATUSES_IGNORE);
    }
}

static const struct {
    const char *name;
    void (*hang)(void);
} cases[] = {
    {"halo", halo},
    {"any-of-two", any_of_two},
    {"from-anybody", from_anybody},
    {"one-is-missing", one_is_missing},
    {"not-that-one", not_that_one},
    {"barrier", barrier},
    {"barrier-without-one", barrier_without_one},
    {"persistent", persistent},
    {"other-tag", other_tag},
    {"large-send", large_send},
    {"exchange", exchange},
    {"none", none},
};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_set_name(twin, "twin");
    gate(1);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc > 1 && strcmp(argv[1], cases[i].name) == 0)
            cases[i].hang();
    MPI_Finalize();
    return 0;
}
