/* outside: all but three ranks wait in MPI_Allreduce. Rank 1 computes for ever, rank 2 reads from a pipe that nobody writes to, rank 3
 * has stopped itself. Ends only when it is killed. At least five ranks.
 *
 * Calls per rank: Init, Comm_rank 1; then open for ever: Allreduce (ranks 0, 4 and above). */
#include "../gate.h"

#include <mpi.h>
#include <signal.h>

static volatile unsigned long turns;

static __attribute__((noinline)) void update(void) {
    for (;;)
        turns++;
}

static __attribute__((noinline)) long load_mesh(int from) {
    char byte;
    return read(from, &byte, 1);
}

static __attribute__((noinline)) void wait_for_all(int rank) {
    int sum;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int rank, ends[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gate(1);
    if (rank == 1)
        update();
    if (rank == 2 && pipe(ends) == 0)
        return (int)load_mesh(ends[0]);
    if (rank == 3)
        raise(SIGSTOP);
    wait_for_all(rank);
    MPI_Finalize();
    return 0;
}
