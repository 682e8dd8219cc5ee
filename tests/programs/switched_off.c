/* switched_off: ranks that have counting switched off for some steps by MPI_Pcontrol, each for others.
 *
 * Of each of three ranks, in each of STEPS steps: MPI_Bcast, MPI_Allreduce or MPI_Barrier in turn; then ranks 0 and 1 exchange one int by MPI_Sendrecv.
 * Rank 0 has counting off from step 5 to 11, and rank 1 from step 20 to 21. */
#include <mpi.h>

enum { STEPS = 30 };

int main(int argc, char **argv) {
    int rank, out = 1, in;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < STEPS; step++) {
        if ((rank == 0 && step == 5) || (rank == 1 && step == 20))
            MPI_Pcontrol(0);
        if ((rank == 0 && step == 12) || (rank == 1 && step == 22))
            MPI_Pcontrol(1);
        if (step % 3 == 0)
            MPI_Bcast(&out, 1, MPI_INT, 0, MPI_COMM_WORLD);
        else if (step % 3 == 1)
            MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        else
            MPI_Barrier(MPI_COMM_WORLD);
        if (rank < 2)
            MPI_Sendrecv(&out, 1, MPI_INT, 1 - rank, 0, &in, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
}
