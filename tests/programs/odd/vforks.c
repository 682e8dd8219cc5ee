/* vforks [N]: N times (default 10) a child made by vfork executes /bin/true while the parent waits, each followed by an allreduce.
 *
 * Calls per rank: Init, Comm_rank, Finalize 1; Allreduce, Comm_size N. Gate: 1 after MPI_Init. */
#define _GNU_SOURCE
#include "../gate.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    const int count = argc > 1 ? atoi(argv[1]) : 10;
    int rank, right = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gate(1);
    for (int i = 0; i < count; i++) {
        int status = -1, one = 1, sum = 0, size;
        const pid_t child = vfork();
        if (child == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        waitpid(child, &status, 0);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        right += status == 0 && sum == size;
    }
    if (rank == 0)
        printf("vforks: %d of %d right\n", right, count);
    MPI_Finalize();
    return right == count ? 0 : 1;
}
