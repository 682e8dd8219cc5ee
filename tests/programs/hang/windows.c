/* hang_windows CASE: ranks that hang in accesses to windows, each function a case. Ends only when it is killed, but for `none`, in which
 * nobody hangs: all go on until they are killed. Three ranks.
 *
 * Calls per rank: Init, Comm_rank, Win_create 1; then by case. */
#include "../gate.h"

#include <mpi.h>
#include <string.h>

static int rank, memory[4], value;
static MPI_Win halo, other;

static void fence(void) {
    if (rank == 1)
        MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_fence(0, halo);
}

static void other_window(void) {
    MPI_Win_fence(0, rank == 1 ? other : halo);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 1 keeps the lock. */
static void lock(void) {
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, halo);
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, halo);
        MPI_Win_flush(0, halo);
        for (int to = 0; to < 3; to += 2)
            MPI_Send(&rank, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Recv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 2) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, halo);
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, halo);
        MPI_Win_unlock(0, halo);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void no_post(void) {
    MPI_Group world, target;
    const int one = 1;
    if (rank == 0) {
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Group_incl(world, 1, &one, &target);
        MPI_Win_start(target, 0, halo);
        MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, halo);
        MPI_Win_complete(halo);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void no_complete(void) {
    MPI_Group world, origin;
    const int zero = 0;
    if (rank == 1) {
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Group_incl(world, 1, &zero, &origin);
        MPI_Win_post(origin, 0, halo);
        MPI_Win_wait(halo);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Two that access each other's window, and neither lets the other at its own. */
static void no_posts(void) {
    MPI_Group world, target;
    const int partner = 1 - rank;
    if (rank < 2) {
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Group_incl(world, 1, &partner, &target);
        MPI_Win_start(target, 0, halo);
        MPI_Win_complete(halo);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void none(void) {
    for (;;) {
        MPI_Win_fence(0, halo);
        MPI_Put(&rank, 1, MPI_INT, (rank + 1) % 3, 0, 1, MPI_INT, halo);
        MPI_Win_fence(0, halo);
        MPI_Win_lock(MPI_LOCK_SHARED, (rank + 1) % 3, 0, other);
        MPI_Get(&value, 1, MPI_INT, (rank + 1) % 3, 0, 1, MPI_INT, other);
        MPI_Win_unlock((rank + 1) % 3, other);
    }
}

static const struct {
    const char *name;
    void (*hang)(void);
} cases[] = {
    {"fence", fence},     {"other-window", other_window}, {"lock", lock},
    {"no-post", no_post}, {"no-complete", no_complete},   {"no-posts", no_posts}, {"none", none},
};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &halo);
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &other);
    gate(1);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc > 1 && strcmp(argv[1], cases[i].name) == 0)
            cases[i].hang();
    MPI_Finalize();
    return 0;
}
