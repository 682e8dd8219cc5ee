/* epochs: one-sided communication with general active target synchronisation. Three ranks.
 *
 * In each of STEPS steps rank 0 exposes its window to the others (MPI_Win_post, MPI_Win_wait), which put an int each into it (MPI_Win_start, MPI_Put,
 * MPI_Win_complete). Rank 0 comes late (late.h) to MPI_Win_post in even steps, and the last rank to MPI_Win_complete in odd ones. */
#include <mpi.h>
#include "late.h"

enum { STEPS = 10 };

int main(int argc, char **argv) {
    int rank, size, *data, number = 1, others[2] = {1, 2}, first = 0;
    MPI_Win window;
    MPI_Group all, target, origins;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &first, &target);
    MPI_Group_incl(all, 2, others, &origins);
    MPI_Win_allocate(size * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &data, &window);
    for (int step = 0; step < STEPS; step++) {
        if (rank == 0) {
            if (step % 2 == 0)
                come_late(step == 0);
            MPI_Win_post(origins, 0, window);
            MPI_Win_wait(window);
        } else {
            MPI_Win_start(target, 0, window);
            MPI_Put(&number, 1, MPI_INT, 0, rank, 1, MPI_INT, window);
            if (rank == size - 1 && step % 2 == 1)
                come_late(step == 1);
            MPI_Win_complete(window);
        }
    }
    MPI_Win_free(&window);
    MPI_Group_free(&origins);
    MPI_Group_free(&target);
    MPI_Group_free(&all);
    MPI_Finalize();
}
