/* Invariant HANDLES-RELEASED. */
/* What the program does inside a call of MPI: in functions that MPI calls when an attribute is deleted. It frees communicators there,
 * whose handles MPI gives to others at once. */
#include "semantics.h"

static int keyval, out[16], in[64], counts[4], places[4];

/* The attribute of a communicator is another one, which goes with it. */
static int free_other(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)extra;
    MPI_Comm *other = value;
    MPI_Comm_free(other);
    free(other);
    return MPI_SUCCESS;
}

static void make(void) {
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_other, &keyval, NULL);
    for (int i = 0; i < 4; i++) {
        counts[i] = i + 1;
        places[i] = 4 * i;
    }
}

/* Sizes and ranks differ from those of the communicator that had the handle before. */
static void messages_over(MPI_Comm comm) {
    int me, size;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
    fill(out, 16, rank, 1);
    MPI_Sendrecv(out, 3, MPI_INT, (me + 1) % size, 1, in, 16, MPI_INT, (me + size - 1) % size, 1, comm, MPI_STATUS_IGNORE);
    MPI_Allgatherv(out, me + 1, MPI_INT, in, counts, places, MPI_INT, comm);
    MPI_Gather(out, 2, MPI_INT, in, 2, MPI_INT, size - 1, comm);
}

static MPI_Comm part(int round) {
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, round % 3 == 0 ? rank / 2 : round % 3 == 1 ? rank % 2 : 0, -rank, &comm);
    return comm;
}

/* As mpi4py's objects do it. */
static void freed_inside(void) {
    for (int i = 0; i < 9; i++) {
        MPI_Comm outer, *inner = malloc(sizeof *inner);
        MPI_Comm_dup(MPI_COMM_WORLD, &outer);
        *inner = part(i);
        messages_over(*inner);
        MPI_Comm_set_attr(outer, keyval, inner);
        if (i % 2)
            MPI_Comm_delete_attr(outer, keyval);
        MPI_Comm_free(&outer);
    }
}

static void use(void) {
    freed_inside();
}

static void release(void) {
    MPI_Comm_free_keyval(&keyval);
}

const struct section inner_calls = {"inner-calls", make, use, release};
