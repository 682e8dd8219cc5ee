/* A process by itself that makes calls of which it is known how many there are and what they move: when the file is there, so many rounds.

   usage: alone ROUNDS FILE  */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[1]) : 0, out = 1, in, found;
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Init(&argc, &argv);
    puts("ready");
    fflush(stdout);
    while (rounds > 0 && access(argv[2], F_OK) != 0)
        usleep(10000);
    for (int i = 0; i < rounds; i++) {
        MPI_Sendrecv(&out, 1, MPI_INT, 0, i, &in, 1, MPI_INT, 0, i, MPI_COMM_SELF, i % 2 ? MPI_STATUS_IGNORE : &status);
        MPI_Irecv(&in, 1, MPI_INT, i % 3 ? 0 : MPI_ANY_SOURCE, 3, MPI_COMM_SELF, &requests[0]);
        MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_SELF, &found, i % 2 ? MPI_STATUS_IGNORE : &status);
        MPI_Isend(&out, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Barrier(MPI_COMM_SELF);
    }
    MPI_Finalize();
    return 0;
}
