/* Blocking collectives with their v and w variants, in-place arguments, and a user-defined operation. */
#include "groups.h"

static int four_each[4] = {1, 1, 1, 1}, places[4] = {0, 1, 2, 3};
static int byte_places[4] = {0, 4, 8, 12};

/* Called by the library inside a reduction: its own MPI call is an inner one, so it is not counted. */
static void user_sum(void *in, void *inout, int *length, MPI_Datatype *type) {
    int bytes;
    MPI_Type_size(*type, &bytes);
    for (int i = 0; i < *length; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static int in_rank_order(const int *values, int factor, int term) {
    for (int i = 0; i < size; i++)
        if (values[i] != i * factor + term)
            return 0;
    return 1;
}

static void moving(void) {
    int one, four[4], in[4];
    MPI_Datatype types[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
    CALL(MPI_Barrier)(MPI_COMM_WORLD);
    one = rank == 2 ? 77 : 0;
    CALL(MPI_Bcast)(&one, 1, MPI_INT, 2, MPI_COMM_WORLD);
    EXPECT(one == 77);

    CALL(MPI_Gather)(&rank, 1, MPI_INT, in, 1, MPI_INT, 0, MPI_COMM_WORLD);
    EXPECT(rank != 0 || in_rank_order(in, 1, 0));
    CALL(MPI_Gatherv)(&rank, 1, MPI_INT, in, four_each, places, MPI_INT, 1, MPI_COMM_WORLD);
    EXPECT(rank != 1 || in_rank_order(in, 1, 0));
    for (int i = 0; i < 4; i++)
        four[i] = i * 5;
    CALL(MPI_Scatter)(four, 1, MPI_INT, &one, 1, MPI_INT, 3, MPI_COMM_WORLD);
    EXPECT(one == rank * 5);
    CALL(MPI_Scatterv)(four, four_each, places, MPI_INT, &one, 1, MPI_INT, 0, MPI_COMM_WORLD);
    EXPECT(one == rank * 5);
    CALL(MPI_Allgather)(&rank, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
    EXPECT(in_rank_order(in, 1, 0));
    CALL(MPI_Allgatherv)(&rank, 1, MPI_INT, in, four_each, places, MPI_INT, MPI_COMM_WORLD);
    EXPECT(in_rank_order(in, 1, 0));
    for (int i = 0; i < 4; i++)
        four[i] = rank * 10 + i;
    CALL(MPI_Alltoall)(four, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
    EXPECT(in_rank_order(in, 10, rank));
    CALL(MPI_Alltoallv)(four, four_each, places, MPI_INT, in, four_each, places, MPI_INT, MPI_COMM_WORLD);
    EXPECT(in_rank_order(in, 10, rank));
    CALL(MPI_Alltoallw)(four, four_each, byte_places, types, in, four_each, byte_places, types, MPI_COMM_WORLD);
    EXPECT(in_rank_order(in, 10, rank));
}

static void reducing(void) {
    int one, four[4] = {rank, rank, rank, rank}, in[4];
    CALL(MPI_Reduce)(&rank, &one, 1, MPI_INT, MPI_MAX, 3, MPI_COMM_WORLD);
    EXPECT(rank != 3 || one == 3);
    CALL(MPI_Allreduce)(&rank, &one, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(one == 6);
    CALL(MPI_Reduce_scatter)(four, &one, four_each, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(one == 6);
    CALL(MPI_Reduce_scatter_block)(four, &one, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(one == 6);
    CALL(MPI_Scan)(&rank, &one, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(one == rank * (rank + 1) / 2);
    CALL(MPI_Exscan)(&rank, &one, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(rank == 0 || one == rank * (rank - 1) / 2);
    one = 5;
    CALL(MPI_Reduce_local)(&rank, &one, 1, MPI_INT, MPI_SUM);
    EXPECT(one == rank + 5);

    MPI_Op operation;
    int commutative;
    CALL(MPI_Op_create)(user_sum, 1, &operation);
    CALL(MPI_Op_commutative)(operation, &commutative);
    CALL(MPI_Allreduce)(four, in, 4, MPI_INT, operation, MPI_COMM_WORLD);
    EXPECT(in_rank_order(in, 0, 6) && commutative);
    CALL(MPI_Op_free)(&operation);
}

static void in_place(void) {
    int four[4] = {-1, -1, -1, -1};
    four[rank] = rank;
    CALL(MPI_Allgather)(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, four, 1, MPI_INT, MPI_COMM_WORLD);
    EXPECT(in_rank_order(four, 1, 0));
    CALL(MPI_Allreduce)(MPI_IN_PLACE, four, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(in_rank_order(four, 4, 0));
    four[0] = rank;
    if (rank == 0)
        CALL(MPI_Gather)(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, four, 1, MPI_INT, 0, MPI_COMM_WORLD);
    else
        CALL(MPI_Gather)(four, 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
    EXPECT(rank != 0 || in_rank_order(four, 1, 0));
}

void collectives(void) {
    moving();
    reducing();
    in_place();
}
