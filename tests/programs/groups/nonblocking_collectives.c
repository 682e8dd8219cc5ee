/* Each nonblocking collective, started and waited for. */
#include "groups.h"

static int counts[4] = {1, 1, 1, 1}, places[4] = {0, 1, 2, 3}, byte_places[4] = {0, 4, 8, 12};

void nonblocking_collectives(void) {
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Datatype types[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
    int in[17][4], four[4] = {rank, rank, rank, rank}, root = rank == 0 ? 9 : 0;
    MPI_Request requests[17];
    memset(in, -1, sizeof in);

    CALL(MPI_Ibarrier)(world, &requests[0]);
    CALL(MPI_Ibcast)(&root, 1, MPI_INT, 0, world, &requests[1]);
    CALL(MPI_Igather)(&rank, 1, MPI_INT, in[2], 1, MPI_INT, 0, world, &requests[2]);
    CALL(MPI_Igatherv)(&rank, 1, MPI_INT, in[3], counts, places, MPI_INT, 0, world, &requests[3]);
    CALL(MPI_Iscatter)(places, 1, MPI_INT, in[4], 1, MPI_INT, 0, world, &requests[4]);
    CALL(MPI_Iscatterv)(places, counts, places, MPI_INT, in[5], 1, MPI_INT, 0, world, &requests[5]);
    CALL(MPI_Iallgather)(&rank, 1, MPI_INT, in[6], 1, MPI_INT, world, &requests[6]);
    CALL(MPI_Iallgatherv)(&rank, 1, MPI_INT, in[7], counts, places, MPI_INT, world, &requests[7]);
    CALL(MPI_Ialltoall)(four, 1, MPI_INT, in[8], 1, MPI_INT, world, &requests[8]);
    CALL(MPI_Ialltoallv)(four, counts, places, MPI_INT, in[9], counts, places, MPI_INT, world, &requests[9]);
    CALL(MPI_Ialltoallw)(four, counts, byte_places, types, in[10], counts, byte_places, types, world, &requests[10]);
    CALL(MPI_Ireduce)(&rank, in[11], 1, MPI_INT, MPI_SUM, 0, world, &requests[11]);
    CALL(MPI_Iallreduce)(&rank, in[12], 1, MPI_INT, MPI_SUM, world, &requests[12]);
    CALL(MPI_Ireduce_scatter)(four, in[13], counts, MPI_INT, MPI_SUM, world, &requests[13]);
    CALL(MPI_Ireduce_scatter_block)(four, in[14], 1, MPI_INT, MPI_SUM, world, &requests[14]);
    CALL(MPI_Iscan)(&rank, in[15], 1, MPI_INT, MPI_SUM, world, &requests[15]);
    CALL(MPI_Iexscan)(&rank, in[16], 1, MPI_INT, MPI_SUM, world, &requests[16]);
    CALL(MPI_Waitall)(17, requests, MPI_STATUSES_IGNORE);

    EXPECT(root == 9);
    EXPECT(rank != 0 || (in[2][3] == 3 && in[3][2] == 2 && in[11][0] == 6));
    EXPECT(in[4][0] == rank && in[5][0] == rank);
    for (int i = 0; i < 4; i++)
        for (int row = 6; row <= 10; row++)
            EXPECT(in[row][i] == i);
    EXPECT(in[12][0] == 6 && in[13][0] == 6 && in[14][0] == 6);
    EXPECT(in[15][0] == rank * (rank + 1) / 2);
    EXPECT(rank == 0 || in[16][0] == rank * (rank - 1) / 2);
}
