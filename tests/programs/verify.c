/* verify [rounds]: exchanges messages of many sizes, checks every byte of each, until the test asks for an end (or for so
 * many rounds). For attaching and detaching: a probe that disturbs a call shows as a wrong message, a wrong result or a crash.
 *
 * In each round, rank r exchanges with both neighbours, by blocking and nonblocking calls, a message whose size goes through
 * 0, 1, 7, … 40000 bytes; then an allreduce and a broadcast are checked. Calls are counted by the program (counted.h).
 * Gates: 1 after MPI_Init, 2 before MPI_Finalize. Exit status 1 on a wrong byte. */
#include "counted.h"
#include "gate.h"

#include <mpi.h>

enum { LONGEST = 40000 };

static int rank, size;

static void check(int correct, const char *what, long round) {
    if (correct)
        return;
    fprintf(stderr, "verify: rank %d, round %ld: wrong %s\n", rank, round, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned char byte(int sender, long round, int position) {
    unsigned value = (unsigned)sender * 2654435761u + (unsigned)round * 40503u + (unsigned)position * 97u;
    return (unsigned char)(value ^ value >> 13);
}

static void verify(const unsigned char *message, int length, int sender, long round, const MPI_Status *status) {
    int received;
    CALL(MPI_Get_count)(status, MPI_BYTE, &received);
    check(received == length && status->MPI_SOURCE == sender, "envelope", round);
    for (int i = 0; i < length; i++)
        check(message[i] == byte(sender, round, i), "byte", round);
}

int main(int argc, char **argv) {
    static const int lengths[] = {0, 1, 7, 64, 1000, 4096, 12000, LONGEST};
    static unsigned char out[LONGEST], in[LONGEST];
    long rounds = argc > 1 ? atol(argv[1]) : 0, round = 0, stop = 0;

    CALL(MPI_Init)(&argc, &argv);
    CALL(MPI_Comm_rank)(MPI_COMM_WORLD, &rank);
    CALL(MPI_Comm_size)(MPI_COMM_WORLD, &size);
    gate(1);
    for (; !stop && (rounds == 0 || round < rounds); round++) {
        int length = lengths[round % 8], right = (rank + 1) % size, left = (rank + size - 1) % size;
        MPI_Status status, statuses[2];
        for (int i = 0; i < length; i++)
            out[i] = byte(rank, round, i);

        CALL(MPI_Sendrecv)(out, length, MPI_BYTE, right, 1, in, LONGEST, MPI_BYTE, left, 1, MPI_COMM_WORLD, &status);
        verify(in, length, left, round, &status);

        MPI_Request requests[2];
        CALL(MPI_Irecv)(in, LONGEST, MPI_BYTE, right, 2, MPI_COMM_WORLD, &requests[0]);
        CALL(MPI_Isend)(out, length, MPI_BYTE, left, 2, MPI_COMM_WORLD, &requests[1]);
        CALL(MPI_Waitall)(2, requests, statuses);
        verify(in, length, right, round, &statuses[0]);

        long mine[2] = {rank * 3 + round, rank == 0 && stop_requested()}, sum[2];
        CALL(MPI_Allreduce)(mine, sum, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        check(sum[0] == size * (size - 1) / 2 * 3 + size * round, "sum", round);
        stop = sum[1];

        int root = (int)(round % size), value = rank == root ? (int)round * 31 : -1;
        CALL(MPI_Bcast)(&value, 1, MPI_INT, root, MPI_COMM_WORLD);
        check(value == (int)round * 31, "broadcast", round);
    }
    gate(2);
    CALL(MPI_Finalize)();
    save_counts(rank);
    if (rank == 0)
        printf("verify: %ld rounds, all correct\n", round);
    return 0;
}
