/* phases [deep]: two ranks, what they call between the marks of MPI_Pcontrol; every level and argument means one thing.
 *
 * Calls per rank after gate 1, by the innermost phase that is open (name if there is one, else level), Pcontrol itself in what was open
 * before it; Sendrecv of 100 bytes with the other rank, 1000 in "halo":
 *
 *   none         Barrier 10 + 6, Finalize 1
 *   "solve"      Barrier 20 + 3 + 1, Sendrecv 5; opened twice
 *   "halo"       Sendrecv 7, Barrier 2
 *   switched off Barrier 9, Sendrecv 3
 *   5            Barrier 4
 *   "left open"  Barrier 1; closed with 5
 *   "post"       Irecv 1, Isend 1, of 300 bytes
 *   "complete"   Waitall 1, of those
 *
 * Rank 0 asks for results (level 2) before gate 2; "none" has 10 Barriers until then.
 * deep: instead of all this, 20 times "deep" inside itself, a Barrier each, closed again, then one Barrier.
 * Gates: 1 after MPI_Init, 2 as said. */
#include "gate.h"

#include <mpi.h>
#include <string.h>

/* Nobody has touched the pages that names are on when they are given: as it is with literals in a larger program. Far from one another and from all
 * else, since the kernel brings in what is around a page that is touched. */
#define FAR (1 << 17)
static const struct {
    char before[FAR], solve[FAR], halo[FAR], left_open[FAR], post[FAR], complete[FAR], deep[FAR];
} names = {"", "solve", "halo", "left open", "post", "complete", "deep"};

static int rank, partner;
static char out[1000], in[1000];

static void barriers(int number) {
    for (int i = 0; i < number; i++)
        MPI_Barrier(MPI_COMM_WORLD);
}

static void exchange(int number, int bytes) {
    for (int i = 0; i < number; i++)
        MPI_Sendrecv(out, bytes, MPI_CHAR, partner, 1, in, bytes, MPI_CHAR, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void solve(void) {
    MPI_Pcontrol(3, names.solve);
    barriers(20);
    exchange(5, 100);
    MPI_Pcontrol(4, names.halo);
    exchange(7, 1000);
    MPI_Pcontrol(0);
    barriers(9);
    exchange(3, 100);
    MPI_Pcontrol(1);
    barriers(2);
    MPI_Pcontrol(-4, names.halo);
    barriers(3);
    /* No text is at this address. */
    MPI_Pcontrol(5, (const char *)8);
    barriers(4);
    MPI_Pcontrol(6, names.left_open);
    barriers(1);
    /* Nothing of this level is open. */
    MPI_Pcontrol(-12);
    MPI_Pcontrol(-5);
    MPI_Pcontrol(-3);
    MPI_Pcontrol(3, names.solve);
    barriers(1);
    MPI_Pcontrol(-3);
}

static void across(void) {
    MPI_Request requests[2];
    MPI_Pcontrol(7, names.post);
    MPI_Irecv(in, 300, MPI_CHAR, partner, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 300, MPI_CHAR, partner, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Pcontrol(-7);
    MPI_Pcontrol(8, names.complete);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Pcontrol(-8);
}

static void deep(void) {
    for (int i = 0; i < 20; i++) {
        MPI_Pcontrol(9, names.deep);
        barriers(1);
    }
    for (int i = 0; i < 20; i++)
        MPI_Pcontrol(-9);
    barriers(1);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    partner = 1 - rank;
    gate(1);
    if (argc > 1 && strcmp(argv[1], "deep") == 0) {
        deep();
    } else {
        barriers(10);
        solve();
        across();
        if (rank == 0)
            MPI_Pcontrol(2);
        gate(2);
        barriers(6);
    }
    MPI_Finalize();
    return 0;
}
