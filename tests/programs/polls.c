/* A program that polls: ranks exchange messages in pairs by MPI_Sendrecv, a number of times that is known, and ask in between for a
   request that is complete, as often as they can, and for a message that never comes. With `calm`, in the first third of the time only.

   usage: polls SECONDS EXCHANGES_PER_S [calm]  */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate.h"

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 5, rate = argc > 2 ? atof(argv[2]) : 100;
    int calm = argc > 3 && strcmp(argv[3], "calm") == 0, rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int other = rank ^ 1, out = rank, in = -1, found = 0;
    long polls = 0, tests = 0, exchanges = (long)(seconds * rate);
    MPI_Request request = MPI_REQUEST_NULL;
    gate(1);
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    for (long done = 0; done < exchanges; done++) {
        if (other < size)
            MPI_Sendrecv(&out, 1, MPI_INT, other, 7, &in, 1, MPI_INT, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double next = began + (done + 1) / rate, share = (double)done / exchanges;
        int quiet = calm && share > 1.0 / 3;
        while (MPI_Wtime() < next)
            for (int i = 0; !quiet && i < 4096; i++) {
                MPI_Test(&request, &found, MPI_STATUS_IGNORE);
                tests++;
                /* Gives the processor away, where others want it. */
                if (i == 0) {
                    MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
                    polls++;
                }
            }
    }
    printf("rank %d: %ld polls, %ld tests, %ld exchanges\n", rank, polls, tests, exchanges);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
