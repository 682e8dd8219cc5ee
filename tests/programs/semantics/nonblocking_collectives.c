/* Nonblocking collectives, and persistent ones where MPI has them. Amounts differ from rank to rank as in collectives.c. */
#include "semantics.h"

static const int counts[4] = {1, 2, 3, 4}, places[4] = {0, 1, 3, 6};
static int out[64], in[12][64];

static void nonblocking(void) {
    MPI_Request requests[16];
    int n = 0, row_counts[4], rows[4] = {0, 8, 16, 24}, twos[4] = {2, 2, 2, 2}, bytes[4] = {0, 16, 32, 48};
    MPI_Datatype types[4];
    const MPI_Datatype by_distance[4] = {MPI_CHAR, MPI_SHORT, MPI_INT, MPI_DOUBLE};
    for (int i = 0; i < 4; i++) {
        types[i] = by_distance[i ^ rank];
        row_counts[i] = rank + 1;
    }
    fill(out, 12, rank, 1);
    memcpy(in[0], out, sizeof in[0]);
    MPI_Ibcast(in[0], 5, MPI_INT, 1, MPI_COMM_WORLD, &requests[n++]);
    MPI_Igather(out, 3, MPI_INT, in[1], 3, MPI_INT, 0, MPI_COMM_WORLD, &requests[n++]);
    MPI_Igatherv(out, counts[rank], MPI_INT, in[2], counts, places, MPI_INT, 3, MPI_COMM_WORLD, &requests[n++]);
    MPI_Iscatter(out, 2, MPI_INT, in[3], 2, MPI_INT, 2, MPI_COMM_WORLD, &requests[n++]);
    MPI_Iscatterv(out, counts, places, MPI_INT, in[4], counts[rank], MPI_INT, 0, MPI_COMM_WORLD, &requests[n++]);
    MPI_Iallgather(out, 2, MPI_INT, in[5], 2, MPI_INT, MPI_COMM_WORLD, &requests[n++]);
    MPI_Iallgatherv(out, counts[rank], MPI_INT, in[6], counts, places, MPI_INT, MPI_COMM_WORLD, &requests[n++]);
    MPI_Ialltoall(out, 3, MPI_INT, in[7], 3, MPI_INT, MPI_COMM_WORLD, &requests[n++]);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    check(in[0], 5, 1, 1);
    check(in[5] + 6, 2, 3, 1);
    n = 0;
    MPI_Ialltoallv(out, counts, places, MPI_INT, in[0], row_counts, rows, MPI_INT, MPI_COMM_WORLD, &requests[n++]);
    MPI_Ialltoallw(out, twos, bytes, types, in[1], twos, bytes, types, MPI_COMM_WORLD, &requests[n++]);
    MPI_Ireduce(out, in[2], 4, MPI_INT, MPI_MAX, 3, MPI_COMM_WORLD, &requests[n++]);
    MPI_Iallreduce(out, in[3], 4, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[n++]);
    MPI_Iscan(out, in[4], 4, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[n++]);
    MPI_Iexscan(out, in[5], 4, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[n++]);
    MPI_Ireduce_scatter(out, in[6], counts, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[n++]);
    MPI_Ireduce_scatter_block(out, in[7], 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[n++]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[n++]);
    for (int i = 0; i < n; i++)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    check(in[3], 4, 3, 1);
}

static void in_place(void) {
    const MPI_Datatype none = MPI_DATATYPE_NULL;
    MPI_Request requests[5];
    memset(in, 0, sizeof in);
    if (rank == 0)
        MPI_Igather(MPI_IN_PLACE, 0, none, in[0], 2, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
    else
        MPI_Igather(in[0], 2, MPI_INT, NULL, 0, none, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Iallgather(MPI_IN_PLACE, 0, none, in[1], 3, MPI_INT, MPI_COMM_WORLD, &requests[1]);
    MPI_Iallreduce(MPI_IN_PLACE, in[2], 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2]);
    MPI_Ireduce_scatter(MPI_IN_PLACE, in[3], counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[3]);
    MPI_Ialltoall(MPI_IN_PLACE, 0, none, in[4], 6, MPI_INT, MPI_COMM_WORLD, &requests[4]);
    MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
}

#if MPI_VERSION >= 4
enum { PERSISTENT = 16 };
static MPI_Request persistent[PERSISTENT];
static const int same[4] = {2, 2, 2, 2}, rows[4] = {0, 8, 16, 24}, bytes[4] = {0, 16, 32, 48};
static MPI_Datatype types[4];

static void make(void) {
    const MPI_Info no = MPI_INFO_NULL;
    const MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request *request = persistent;
    for (int i = 0; i < 4; i++)
        types[i] = i % 2 == rank % 2 ? MPI_INT : MPI_SHORT;
    MPI_Bcast_init(in[0], 5, MPI_INT, 1, world, no, request++);
    MPI_Gather_init(out, 3, MPI_INT, in[1], 3, MPI_INT, 0, world, no, request++);
    MPI_Gatherv_init(out, counts[rank], MPI_INT, in[2], counts, places, MPI_INT, 3, world, no, request++);
    MPI_Scatter_init(out, 2, MPI_INT, in[3], 2, MPI_INT, 2, world, no, request++);
    MPI_Scatterv_init(out, counts, places, MPI_INT, in[4], counts[rank], MPI_INT, 0, world, no, request++);
    MPI_Allgather_init(out, 2, MPI_INT, in[5], 2, MPI_INT, world, no, request++);
    MPI_Allgatherv_init(out, counts[rank], MPI_INT, in[6], counts, places, MPI_INT, world, no, request++);
    MPI_Alltoall_init(out, 3, MPI_INT, in[7], 3, MPI_INT, world, no, request++);
    MPI_Alltoallv_init(out, same, rows, MPI_INT, in[8], same, rows, MPI_INT, world, no, request++);
    MPI_Alltoallw_init(out, same, bytes, types, in[9], same, bytes, types, world, no, request++);
    MPI_Reduce_init(out, in[10], 4, MPI_INT, MPI_MAX, 3, world, no, request++);
    MPI_Allreduce_init(out, in[11], 4, MPI_INT, MPI_MAX, world, no, request++);
    MPI_Scan_init(out, in[1] + 32, 4, MPI_INT, MPI_MAX, world, no, request++);
    MPI_Exscan_init(out, in[2] + 32, 4, MPI_INT, MPI_MAX, world, no, request++);
    MPI_Reduce_scatter_init(out, in[3] + 32, counts, MPI_INT, MPI_MAX, world, no, request++);
    MPI_Reduce_scatter_block_init(out, in[4] + 32, 2, MPI_INT, MPI_MAX, world, no, request++);
}

static void use_persistent(void) {
    fill(out, 64, rank, 2);
    MPI_Startall(PERSISTENT, persistent);
    MPI_Waitall(PERSISTENT, persistent, MPI_STATUSES_IGNORE);
    /* Only this one again: MPICH 4.0.2 fails now and then when it starts others, such as a gather, a second time. */
    MPI_Start(&persistent[11]);
    MPI_Wait(&persistent[11], MPI_STATUS_IGNORE);
    check(in[11], 4, 3, 2);
    MPI_Request barrier;
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &barrier);
    MPI_Start(&barrier);
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    MPI_Request_free(&barrier);
}

static void release(void) {
    for (int i = 0; i < PERSISTENT; i++)
        MPI_Request_free(&persistent[i]);
}
#else
#define make NULL
#define release NULL

static void use_persistent(void) {
}
#endif

static void use(void) {
    nonblocking();
    in_place();
    use_persistent();
}

const struct section nonblocking_collectives = {"nonblocking-collectives", make, use, release};
