/* between_groups: collective calls over an inter-communicator of the ranks with even and those with odd numbers. Four ranks.
 *
 * In each of STEPS steps, over it: MPI_Barrier, MPI_Allreduce, MPI_Bcast and MPI_Reduce with rank 0 of the world as root, MPI_Alltoall, and
 * MPI_Iallgather with MPI_Wait. The last rank comes late (late.h) to MPI_Barrier, and rank 0 to MPI_Bcast. Then MPI_Barrier over a
 * duplicate, and over what both groups merge to. */
#include <mpi.h>
#include "late.h"

enum { STEPS = 10, RANKS = 4 };

int main(int argc, char **argv) {
    int rank, out[RANKS] = {0}, in[RANKS];
    MPI_Comm half, between, copy, merged;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int is_odd = rank % 2, root = is_odd ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, is_odd, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - is_odd, 0, &between);
    for (int step = 0; step < STEPS; step++) {
        if (rank == RANKS - 1)
            come_late(step == 0);
        MPI_Barrier(between);
        MPI_Allreduce(out, in, 1, MPI_INT, MPI_SUM, between);
        if (rank == 0)
            come_late(step == 0);
        MPI_Bcast(out, 1, MPI_INT, root, between);
        MPI_Reduce(out, in, 1, MPI_INT, MPI_SUM, root, between);
        MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, between);
        MPI_Iallgather(out, 1, MPI_INT, in, 1, MPI_INT, between, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Comm_dup(between, &copy);
    MPI_Barrier(copy);
    MPI_Intercomm_merge(between, is_odd, &merged);
    MPI_Barrier(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
    MPI_Finalize();
}
