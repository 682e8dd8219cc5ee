/* Ranks with workers that they have forked after MPI_Init, and that call no MPI: as loaders of data are. Each of them lives as long as its
   rank does.

   usage: workers exchange N   N times MPI_Allreduce, each rank
          workers circle       ranks 0 and 1 receive from each other, and nobody sends

   Gates: 1 when all workers are there.  */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate.h"

static void fork_worker(const int *until)
{
    char end;
    if (fork() != 0)
        return;
    /* Until all write ends are closed, of which this one is the only one that its rank does not hold. */
    close(until[1]);
    while (read(until[0], &end, 1) > 0)
        ;
    _exit(0);
}

int main(int argc, char **argv)
{
    int rank, sum, until[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (pipe(until) != 0)
        return 1;
    for (int i = 0; i <= rank; i++)
        fork_worker(until);
    MPI_Barrier(MPI_COMM_WORLD);
    gate(1);
    if (argc > 1 && strcmp(argv[1], "circle") == 0)
        MPI_Recv(&sum, 1, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; argc > 2 && i < atoi(argv[2]); i++)
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
