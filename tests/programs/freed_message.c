/* freed_message: messages that are received after the communicator has been freed over which they were matched, by MPI-4.1, section 7.4.3, and after
 * its handle has been given to another one whose ranks are others.
 *
 * Of each of three ranks after gate 1, from the rank before it: MPI_Mrecv of 20 bytes twice, MPI_Imrecv of 20 bytes once. The program fails if it has
 * got another message.
 * Gate: 1 after MPI_Init. */
#include "gate.h"

#include <mpi.h>

static int rank, size, wrong;

static void expect(const int *in, const MPI_Status *status) {
    int count, before = (rank + size - 1) % size;
    MPI_Get_count(status, MPI_INT, &count);
    if (count != 5 || in[0] != before || status->MPI_SOURCE != before)
        wrong = 1;
}

/* Over a communicator of its own, which is freed when it has matched the message. */
static MPI_Message matched(void) {
    MPI_Comm copy;
    MPI_Message message;
    int out[5] = {rank, rank, rank, rank, rank};
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Send(out, 5, MPI_INT, (rank + 1) % size, 3, copy);
    MPI_Mprobe((rank + size - 1) % size, 3, copy, &message, MPI_STATUS_IGNORE);
    MPI_Comm_free(&copy);
    return message;
}

int main(int argc, char **argv) {
    int in[100];
    MPI_Status status;
    MPI_Comm reversed;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gate(1);

    MPI_Message message = matched();
    MPI_Mrecv(in, 100, MPI_INT, &message, &status);
    expect(in, &status);

    message = matched();
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Mrecv(in, 100, MPI_INT, &message, &status);
    expect(in, &status);
    MPI_Comm_free(&reversed);

    message = matched();
    MPI_Imrecv(in, 100, MPI_INT, &message, &request);
    MPI_Wait(&request, &status);
    expect(in, &status);

    MPI_Finalize();
    return wrong;
}
