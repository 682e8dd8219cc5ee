/* no_mpi: functions of MPI's names that are the program's own, as in a program that MPI is linked into statically. Exits with
 * status 0 if they were called as often as they should. */
#include <stdio.h>

static int calls;

int MPI_Init(int *count, char ***arguments) {
    (void)count, (void)arguments;
    calls++;
    return 0;
}

int MPI_Send(void) {
    calls++;
    return 0;
}

int MPI_Finalize(void) {
    calls++;
    return 0;
}

int main(int count, char **arguments) {
    if (MPI_Init(&count, &arguments) != 0 || MPI_Send() != 0 || MPI_Finalize() != 0) {
        return 1;
    }
    printf("%d calls\n", calls);
    return calls != 3;
}
