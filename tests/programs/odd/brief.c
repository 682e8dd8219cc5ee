/* brief: a process that is over in a moment, and what it takes for MPI (compiled with -DLIBRARY -shared): functions of these names, and
 * MPI_Send, that do nothing. MPI_Init 1, MPI_Barrier 3, MPI_Finalize 1. Gate: 1 after MPI_Init. */
#ifdef LIBRARY
#define FUNCTION(name)            \
    int P##name(void) { return 0; } \
    int name(void) { return P##name(); }
FUNCTION(MPI_Init)
FUNCTION(MPI_Barrier)
FUNCTION(MPI_Send)
FUNCTION(MPI_Finalize)
#else
#include "../gate.h"

int MPI_Init(int *count, char ***arguments);
int MPI_Barrier(long communicator);
int MPI_Finalize(void);

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    gate(1);
    for (int i = 0; i < 3; i++)
        MPI_Barrier(0);
    puts("brief: over");
    return MPI_Finalize();
}
#endif
