/* layouts: makes datatypes, communicators, statuses and requests of every kind and writes down what MPI says of them, for a test
 * that reads the same from outside. Needs four ranks.
 *
 * Writes facts-RANK in the test's directory, one fact a line (handles and addresses in hexadecimal, names last):
 *   constant NAME VALUE
 *   type HANDLE SIZE NAME
 *   comm HANDLE RANK SIZE REMOTE-SIZE INTER : WORLD-RANKS : WORLD-RANKS OF THE OTHER GROUP : NAME
 *   freed HANDLE                      a communicator that no longer is
 *   status ADDRESS SOURCE TAG BYTES CANCELLED
 *   request HANDLE SOURCE TAG BYTES   completed, with its status ignored
 *   complete HANDLE                   a request that was complete at once
 * Gates: 1 after MPI_Init, 2 when all is written. */
#include "gate.h"

#include <mpi.h>
#include <string.h>

static FILE *facts;
static int rank, size;

/* A handle is a pointer or an int. */
static unsigned long long number(const void *handle, size_t bytes) {
    unsigned long long value = 0;
    memcpy(&value, handle, bytes);
    return value;
}
#define HANDLE(x) number(&(x), sizeof(x))

static void fail(const char *what) {
    fprintf(stderr, "layouts: rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

#include "layouts/constants.inc"
#include "layouts/types.inc"
#include "layouts/communicators.inc"
#include "layouts/messages.inc"

int main(int argc, char **argv) {
    char path[4096];
    const char *directory = getenv("MPIPROBE_TRUTH_DIR");

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gate(1);
    if (directory == NULL || size != 4)
        fail("needs MPIPROBE_TRUTH_DIR and four ranks");
    snprintf(path, sizeof path, "%s/facts-%d", directory, rank);
    facts = fopen(path, "w");
    if (facts == NULL)
        fail("cannot write the facts");
    constants();
    types();
    communicators();
    messages();
    if (fclose(facts) != 0)
        fail("cannot write the facts");
    gate(2);
    MPI_Finalize();
    return 0;
}
