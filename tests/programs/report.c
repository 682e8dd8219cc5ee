/* report FILE: three or more ranks, a little of everything that a report has a table for: messages of several sizes, requests of which one
 * is never complete, a communicator of its own, phases, a file (FILE, which is removed), a window, and a second thread.
 *
 * Gates: 1 after MPI_Init_thread. */
#include "gate.h"

#include <mpi.h>
#include <pthread.h>
#include <stddef.h>

enum { LARGEST = 1 << 16, TIMES = 5 };

static int rank, size, left, right;
static char out[LARGEST], in[LARGEST];
static MPI_Comm beside;

/* To itself, over a communicator that nobody else uses. */
static void *second(void *nothing) {
    for (int i = 0; i < TIMES; i++) {
        MPI_Request request;
        char byte;
        MPI_Irecv(&byte, 1, MPI_CHAR, 0, 5, beside, &request);
        MPI_Send(out, 1, MPI_CHAR, 0, 5, beside);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return nothing;
}

static void exchange(MPI_Comm all) {
    for (int bytes = 0; bytes <= LARGEST; bytes = bytes ? bytes * 16 : 1) {
        MPI_Request requests[2];
        MPI_Irecv(in, bytes, MPI_CHAR, left, 1, all, &requests[0]);
        MPI_Isend(out, bytes, MPI_CHAR, right, 1, all, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Sendrecv(out, bytes, MPI_CHAR, right, 2, in, bytes, MPI_CHAR, left, 2, all, MPI_STATUS_IGNORE);
    }
}

static void again_and_again(MPI_Comm all) {
    MPI_Request requests[2];
    MPI_Recv_init(in, 100, MPI_CHAR, left, 3, all, &requests[0]);
    MPI_Send_init(out, 100, MPI_CHAR, right, 3, all, &requests[1]);
    for (int i = 0; i < TIMES; i++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void together(MPI_Comm row) {
    double own = rank, sum;
    for (int i = 0; i < TIMES; i++) {
        MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, row);
        MPI_Bcast(out, 1000, MPI_CHAR, 0, row);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void to_a_file(const char *name) {
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, (MPI_Offset)rank * 5000, out, 5000, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_read_at(file, (MPI_Offset)rank * 5000, in, 3000, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

static void one_sided(void) {
    MPI_Win window;
    MPI_Win_create(in, LARGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(out, 700, MPI_CHAR, right, 0, 700, MPI_CHAR, window);
    MPI_Win_fence(0, window);
    MPI_Get(out, 300, MPI_CHAR, left, 0, 300, MPI_CHAR, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

int main(int argc, char **argv) {
    MPI_Comm row;
    MPI_Request never;
    pthread_t thread;
    int provided, nobody = -1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
    gate(1);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &row);
    MPI_Comm_set_name(row, "every other");
    MPI_Comm_dup(MPI_COMM_SELF, &beside);
    MPI_Pcontrol(3, "exchange");
    exchange(MPI_COMM_WORLD);
    again_and_again(MPI_COMM_WORLD);
    MPI_Pcontrol(-3, "exchange");
    MPI_Pcontrol(4, "together");
    together(row);
    MPI_Pcontrol(-4, "together");
    if (provided == MPI_THREAD_MULTIPLE && pthread_create(&thread, NULL, second, NULL) == 0)
        pthread_join(thread, NULL);
    if (argc > 1)
        to_a_file(argv[1]);
    one_sided();
    /* Nobody sends this. */
    MPI_Irecv(&nobody, 1, MPI_INT, left, 99, MPI_COMM_WORLD, &never);
    MPI_Comm_free(&row);
    MPI_Comm_free(&beside);
    MPI_Finalize();
    return 0;
}
