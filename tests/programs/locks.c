/* locks: one-sided communication with locks. Three ranks.
 *
 * In each of STEPS steps rank 1 locks rank 0's part of a window for itself, puts an int there, and keeps the lock for 5 ms from when rank 2 is about to
 * ask for it as well, in even steps for itself, in odd ones to share it. Rank 0 waits in MPI_Recv, so that all goes on. 4 messages and a barrier a step. */
#include <mpi.h>
#include <unistd.h>

enum { STEPS = 10 };

int main(int argc, char **argv) {
    int rank, *data, number = 1;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(sizeof(int) * 4, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &data, &window);
    for (int step = 0; step < STEPS; step++) {
        if (rank == 0) {
            MPI_Recv(&number, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(&number, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
            MPI_Put(&number, 1, MPI_INT, 0, 1, 1, MPI_INT, window);
            /* Now it has the lock, whenever the library asks for it. */
            MPI_Win_flush(0, window);
            MPI_Send(&number, 1, MPI_INT, 2, 2, MPI_COMM_WORLD);
            MPI_Recv(&number, 1, MPI_INT, 2, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            usleep(5000);
            MPI_Win_unlock(0, window);
            MPI_Send(&number, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        } else {
            MPI_Recv(&number, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&number, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
            MPI_Win_lock(step % 2 == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, window);
            MPI_Put(&number, 1, MPI_INT, 0, 2, 1, MPI_INT, window);
            MPI_Win_unlock(0, window);
            MPI_Send(&number, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_free(&window);
    MPI_Finalize();
}
