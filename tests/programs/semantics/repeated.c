/* Invariant SAME-IS-SAME. */
/* The same calls from the same places, again and again, while what their arguments mean changes: handles that are used again for
 * other types and communicators, amounts, partners, statuses, buffers in place. Whoever remembers what a call was must notice. */
#include "semantics.h"

enum { ROUNDS = 12, WORDS = 64 };

static int out[4 * WORDS], in[4 * WORDS];

/* One place for each function, whatever it is given. */
__attribute__((noinline)) static void exchange(int count, MPI_Datatype type, int to, int room, MPI_Datatype got, int from,
                                               MPI_Comm comm, MPI_Status *status) {
    MPI_Sendrecv(out, count, type, to, 1, in, room, got, from, 1, comm, status);
}

__attribute__((noinline)) static void send(int count, MPI_Datatype type, int to, MPI_Comm comm) {
    MPI_Send(out, count, type, to, 2, comm);
}

__attribute__((noinline)) static void receive(int room, MPI_Datatype type, int from, MPI_Comm comm, MPI_Status *status) {
    MPI_Recv(in, room, type, from, 2, comm, status);
}

__attribute__((noinline)) static void begin(int count, MPI_Datatype type, int to, int from, MPI_Comm comm,
                                            MPI_Request *requests) {
    MPI_Irecv(in, WORDS, MPI_INT, from, 3, comm, &requests[0]);
    MPI_Isend(out, count, type, to, 3, comm, &requests[1]);
}

__attribute__((noinline)) static void reduce(const void *from, int count, MPI_Datatype type, MPI_Comm comm) {
    MPI_Allreduce(from, in, count, type, MPI_SUM, comm);
}

__attribute__((noinline)) static void gather(const void *from, int root, int count, MPI_Comm comm) {
    MPI_Gather(from, count, MPI_INT, in, count, MPI_INT, root, comm);
}

static void amounts_and_statuses(void) {
    MPI_Status status;
    for (int i = 0; i < ROUNDS; i++) {
        /* Runs of the same, then another: four times each. */
        int count = i / 4 + 1;
        exchange(count, MPI_INT, right, WORDS, MPI_INT, left, MPI_COMM_WORLD, i % 3 ? MPI_STATUS_IGNORE : &status);
        exchange(count, i % 2 ? MPI_INT : MPI_DOUBLE, right, WORDS, MPI_INT, i % 2 ? left : MPI_ANY_SOURCE, MPI_COMM_WORLD,
                 i % 5 ? &status : MPI_STATUS_IGNORE);
        IN_TURNS(send(count, MPI_INT, right, MPI_COMM_WORLD),
                 receive(WORDS, MPI_INT, i % 4 == 3 ? MPI_ANY_SOURCE : left, MPI_COMM_WORLD, &status));
        send(count, MPI_INT, MPI_PROC_NULL, MPI_COMM_WORLD);
        receive(WORDS, MPI_INT, MPI_PROC_NULL, MPI_COMM_WORLD, i % 2 ? MPI_STATUS_IGNORE : &status);
    }
}

/* Libraries give the handle of a type that was freed to the next one. */
static void types_anew(void) {
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Datatype type;
        MPI_Type_contiguous(i % 5 + 1, MPI_INT, &type);
        MPI_Type_commit(&type);
        exchange(1, type, right, WORDS, MPI_INT, left, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        exchange(2, MPI_INT, right, 5, type, left, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Request requests[2];
        begin(1, type, right, left, MPI_COMM_WORLD, requests);
        MPI_Type_free(&type);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

/* And of communicators, whose members differ. */
static void communicators_anew(void) {
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Comm comm;
        int own, size;
        MPI_Comm_split(MPI_COMM_WORLD, i % 3 == 2 ? rank % 2 : 0, i % 2 ? -rank : rank, &comm);
        MPI_Comm_rank(comm, &own);
        MPI_Comm_size(comm, &size);
        for (int twice = 0; twice < 2; twice++) {
            MPI_Request requests[2];
            exchange(3, MPI_INT, (own + 1) % size, WORDS, MPI_INT, (own + size - 1) % size, comm, MPI_STATUS_IGNORE);
            begin(2, MPI_INT, (own + 1) % size, (own + size - 1) % size, comm, requests);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            reduce(out, 4, MPI_INT, comm);
            gather(out, 0, 2, comm);
        }
        MPI_Comm_free(&comm);
    }
}

static void places_of_buffers(void) {
    for (int i = 0; i < ROUNDS; i++) {
        int root = i / 2 % 4;
        reduce(i % 3 == 1 ? MPI_IN_PLACE : out, 5, i % 2 ? MPI_INT : MPI_FLOAT, MPI_COMM_WORLD);
        gather(rank == root && i % 2 ? MPI_IN_PLACE : out, root, 3, MPI_COMM_WORLD);
    }
}

static void many_partners(void) {
    /* More than anybody remembers at once. */
    for (int i = 0; i < 3; i++)
        for (int count = 1; count <= 40; count++)
            exchange(count, MPI_INT, count % 2 ? right : left, WORDS, MPI_INT, count % 2 ? left : right, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static int look(int from, int tag, MPI_Status *status) {
    int found;
    MPI_Iprobe(from, tag, MPI_COMM_WORLD, &found, status);
    return found;
}

__attribute__((noinline)) static void share(int root) {
    MPI_Bcast(in, 2, MPI_INT, root, MPI_COMM_WORLD);
}

/* Tags decide nothing of what a call moves, and whoever asks whether a message has come may be told or not. */
static void tags_and_questions(void) {
    MPI_Status status;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request request;
        int from = i % 2 ? left : MPI_ANY_SOURCE;
        MPI_Sendrecv(out, 2, MPI_INT, right, i, in, WORDS, MPI_INT, left, i % 3 ? i : MPI_ANY_TAG, MPI_COMM_WORLD,
                     i % 2 ? MPI_STATUS_IGNORE : &status);
        EXPECT(!look(from, 99, i % 3 ? &status : MPI_STATUS_IGNORE));
        MPI_Isend(out, 1, MPI_INT, right, 50 + i, MPI_COMM_WORLD, &request);
        while (!look(from, i % 4 == 1 ? MPI_ANY_TAG : 50 + i, i % 3 ? &status : MPI_STATUS_IGNORE))
            ;
        MPI_Recv(in, WORDS, MPI_INT, left, i % 5 ? 50 + i : MPI_ANY_TAG, MPI_COMM_WORLD,
                 i % 2 ? &status : MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        share(i / 3 % 4);
    }
}

static void repeated_calls(void) {
    fill(out, 4 * WORDS, 0, 1);
    amounts_and_statuses();
    types_anew();
    communicators_anew();
    places_of_buffers();
    many_partners();
    tags_and_questions();
}

const struct section repeated = {"repeated", NULL, repeated_calls, NULL};
