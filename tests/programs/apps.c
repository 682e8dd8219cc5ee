/* Programs as people run them, with work that is always the same, so that their own time is what they are slowed by.
 *
 *   polling    works for half a microsecond, and asks for a message that never comes
 *   molecules  works for about a millisecond, and exchanges with its neighbours in three dimensions; all add up at each tenth step
 *   bulk       works for about ten milliseconds; then all add up, and all exchange with all
 *
 * usage: apps MODE STEPS
 *
 * Rank 0 says `seconds S`, and each rank `rank R: FUNCTION CALLS, …` for the functions of its steps. Gate: 1 after MPI_Init. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate.h"

enum { HALF_A_MICROSECOND = 500, MILLISECOND = 1000000, EXCHANGED = 1024 };

static double work(long turns, double value) {
    for (long turn = 0; turn < turns; turn++)
        value = value * 0.999999 + 1e-6;
    return value;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "bulk";
    const long steps = argc > 2 ? atol(argv[2]) : 100;
    long probes = 0, exchanges = 0, sums = 0, alltoalls = 0;
    int rank, size, found, sides[3] = {0, 0, 0}, wraps[3] = {1, 1, 1};
    static double out[EXCHANGED], in[EXCHANGED], all_out[4 * EXCHANGED], all_in[4 * EXCHANGED];
    double value = 1, sum = 0;
    MPI_Comm torus;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > 4)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Dims_create(size, 3, sides);
    MPI_Cart_create(MPI_COMM_WORLD, 3, sides, wraps, 0, &torus);
    gate(1);
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    for (long step = 0; step < steps; step++) {
        if (strcmp(mode, "polling") == 0) {
            value = work(HALF_A_MICROSECOND, value);
            MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
            probes++;
        } else if (strcmp(mode, "molecules") == 0) {
            value = work(MILLISECOND, value);
            for (int direction = 0; direction < 6; direction++) {
                int from, to;
                MPI_Cart_shift(torus, direction / 2, direction % 2 ? 1 : -1, &from, &to);
                MPI_Sendrecv(out, EXCHANGED, MPI_DOUBLE, to, 1, in, EXCHANGED, MPI_DOUBLE, from, 1, torus, MPI_STATUS_IGNORE);
                exchanges++;
            }
            if (step % 10 == 0) {
                MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
                sums++;
            }
        } else {
            value = work(10L * MILLISECOND, value);
            MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            sums++;
            MPI_Alltoall(all_out, EXCHANGED, MPI_DOUBLE, all_in, EXCHANGED, MPI_DOUBLE, MPI_COMM_WORLD);
            alltoalls++;
        }
        out[0] = value;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - began;
    printf("rank %d: MPI_Iprobe %ld, MPI_Sendrecv %ld, MPI_Allreduce %ld, MPI_Alltoall %ld\n", rank, probes, exchanges, sums, alltoalls);
    if (rank == 0)
        printf("seconds %.6f, in the end %.3g\n", seconds, value + sum + in[0] + all_in[0]);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
