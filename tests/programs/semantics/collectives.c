/* Blocking collectives: roots, v and w variants with different counts, in place, arguments that mean nothing here. */
#include "semantics.h"

static const int counts[4] = {1, 2, 3, 4}, places[4] = {0, 1, 3, 6}; /* ten in all */
static int out[64], in[64];

/* An address, count and type that nobody may look at. */
#define GARBAGE ((void *)24)

static void rooted(void) {
    int is_root;
    fill(in, 5, rank, 1);
    MPI_Bcast(in, 5, MPI_INT, 2, MPI_COMM_WORLD);
    check(in, 5, 2, 1);

    is_root = rank == 1;
    fill(out, 3, rank, 2);
    MPI_Gather(out, 3, MPI_INT, is_root ? in : GARBAGE, is_root ? 3 : -1, is_root ? MPI_INT : MPI_DATATYPE_NULL, 1,
               MPI_COMM_WORLD);
    for (int i = 0; is_root && i < 4; i++)
        check(in + 3 * i, 3, i, 2);

    is_root = rank == 3;
    MPI_Gatherv(out, counts[rank], MPI_INT, is_root ? in : NULL, is_root ? counts : NULL, is_root ? places : NULL,
                is_root ? MPI_INT : MPI_DATATYPE_NULL, 3, MPI_COMM_WORLD);

    for (int i = 0; i < 4; i++)
        fill(out + 2 * i, 2, i, 3);
    is_root = rank == 0;
    MPI_Scatter(is_root ? out : GARBAGE, is_root ? 2 : -7, is_root ? MPI_INT : MPI_DATATYPE_NULL, in, 8, MPI_BYTE, 0,
                MPI_COMM_WORLD);
    check(in, 2, rank, 3);

    MPI_Scatterv(is_root ? out : NULL, is_root ? counts : NULL, is_root ? places : NULL,
                 is_root ? MPI_INT : MPI_DATATYPE_NULL, in, counts[rank], MPI_INT, 0, MPI_COMM_WORLD);

    double mine[2] = {rank, 1}, sum[2];
    MPI_Reduce(mine, rank == 3 ? sum : NULL, 2, MPI_DOUBLE, MPI_SUM, 3, MPI_COMM_WORLD);
    EXPECT(rank != 3 || sum[0] == 6);
}

static void all(void) {
    fill(out, 2, rank, 4);
    MPI_Allgather(out, 2, MPI_INT, in, 2, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < 4; i++)
        check(in + 2 * i, 2, i, 4);
    fill(out, 4, rank, 5);
    MPI_Allgatherv(out, counts[rank], MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < 4; i++)
        check(in + places[i], counts[i], i, 5);

    fill(out, 12, rank, 6);
    MPI_Alltoall(out, 3, MPI_INT, in, 3, MPI_INT, MPI_COMM_WORLD);
    EXPECT(in[3] == 100000 + 6000 + 3 * rank);

    /* To rank i, i + 1 words; from each, rank + 1. */
    int same[4] = {rank + 1, rank + 1, rank + 1, rank + 1}, rows[4] = {0, 8, 16, 24};
    MPI_Alltoallv(out, counts, places, MPI_INT, in, same, rows, MPI_INT, MPI_COMM_WORLD);
    EXPECT(in[8] == 100000 + 6000 + places[rank]);

    /* Each pair has another type, of 1, 2, 4 and 8 bytes. */
    const MPI_Datatype by_distance[4] = {MPI_CHAR, MPI_SHORT, MPI_INT, MPI_DOUBLE};
    int twos[4] = {2, 2, 2, 2}, bytes[4] = {0, 16, 32, 48};
    MPI_Datatype types[4];
    for (int i = 0; i < 4; i++)
        types[i] = by_distance[i ^ rank];
    MPI_Alltoallw(out, twos, bytes, types, in, twos, bytes, types, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void reductions(void) {
    long one = rank, sum, many[10] = {rank}, few[4];
    MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(sum == 6);
    MPI_Scan(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(sum == rank * (rank + 1) / 2);
    MPI_Exscan(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(rank == 0 || sum == rank * (rank - 1) / 2);
    MPI_Reduce_scatter(many, few, counts, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(rank != 0 || few[0] == 6);
    MPI_Reduce_scatter_block(many, few, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(rank != 0 || few[0] == 6);
}

static void in_place(void) {
    const MPI_Datatype none = MPI_DATATYPE_NULL;
    int zeros[4] = {0, 0, 0, 0};
    MPI_Datatype ints[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT}, nones[4] = {none, none, none, none};
    int bytes[4] = {0, 4, 8, 12}, ones[4] = {1, 1, 1, 1}, steps[4] = {0, 1, 2, 3};

    fill(in + 3 * rank, 3, rank, 7);
    if (rank == 2)
        MPI_Gather(MPI_IN_PLACE, 0, none, in, 3, MPI_INT, 2, MPI_COMM_WORLD);
    else
        MPI_Gather(in + 3 * rank, 3, MPI_INT, NULL, 0, none, 2, MPI_COMM_WORLD);
    if (rank == 2)
        MPI_Gatherv(MPI_IN_PLACE, 0, none, in, counts, places, MPI_INT, 2, MPI_COMM_WORLD);
    else
        MPI_Gatherv(in, counts[rank], MPI_INT, NULL, NULL, NULL, none, 2, MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Scatter(in, 2, MPI_INT, MPI_IN_PLACE, 0, none, 1, MPI_COMM_WORLD);
    else
        MPI_Scatter(NULL, 0, none, in, 2, MPI_INT, 1, MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Scatterv(in, counts, places, MPI_INT, MPI_IN_PLACE, 0, none, 1, MPI_COMM_WORLD);
    else
        MPI_Scatterv(NULL, NULL, NULL, none, in, counts[rank], MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Allgather(MPI_IN_PLACE, 0, none, in, 2, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgatherv(MPI_IN_PLACE, 0, none, in, counts, places, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoall(MPI_IN_PLACE, 0, none, in, 2, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoallv(MPI_IN_PLACE, zeros, zeros, none, in, ones, steps, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoallw(MPI_IN_PLACE, zeros, zeros, nones, in, ones, bytes, ints, MPI_COMM_WORLD);
    memset(in, 0, sizeof in);
    if (rank == 3)
        MPI_Reduce(MPI_IN_PLACE, in, 6, MPI_INT, MPI_SUM, 3, MPI_COMM_WORLD);
    else
        MPI_Reduce(in, NULL, 6, MPI_INT, MPI_SUM, 3, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, in, 6, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Scan(MPI_IN_PLACE, in, 6, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Exscan(MPI_IN_PLACE, in, 6, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter(MPI_IN_PLACE, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, in, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void use(void) {
    rooted();
    all();
    reductions();
    in_place();
}

const struct section collectives = {"collectives", NULL, use, NULL};
