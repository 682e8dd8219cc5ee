/* spawns: two ranks that spawn two more, which are a world of their own.
 *
 * In each of STEPS steps, over their MPI_COMM_WORLD: ranks that spawn call MPI_Bcast, MPI_Barrier and MPI_Sendrecv, and those that were spawned
 * MPI_Allreduce and MPI_Sendrecv. Then all MPI_Barrier over the inter-communicator between the two. */
#include <mpi.h>

enum { STEPS = 10 };

int main(int argc, char **argv) {
    int rank, out = 1, in;
    MPI_Comm between;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&between);
    int is_spawned = between != MPI_COMM_NULL;
    if (!is_spawned)
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE);
    for (int step = 0; step < STEPS; step++) {
        if (is_spawned) {
            MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        } else {
            MPI_Bcast(&out, 1, MPI_INT, 0, MPI_COMM_WORLD);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        MPI_Sendrecv(&out, 1, MPI_INT, 1 - rank, 0, &in, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(between);
    MPI_Comm_disconnect(&between);
    MPI_Finalize();
}
