/* Process topologies and neighbourhood collectives. The largest argument lists of MPI are here. */
#include "groups.h"

static int counts[2] = {1, 1}, places[2] = {0, 1}, four[2];
static MPI_Aint byte_places[2] = {0, sizeof(int)};

/* In a ring, the two neighbours are left and right; four[] holds what is sent to each. */
static void exchange(MPI_Comm ring) {
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    int in[5][2];
    MPI_Request requests[5];
    four[0] = four[1] = rank;
    CALL(MPI_Neighbor_allgather)(&rank, 1, MPI_INT, in[0], 1, MPI_INT, ring);
    CALL(MPI_Neighbor_allgatherv)(&rank, 1, MPI_INT, in[1], counts, places, MPI_INT, ring);
    CALL(MPI_Neighbor_alltoall)(four, 1, MPI_INT, in[2], 1, MPI_INT, ring);
    CALL(MPI_Neighbor_alltoallv)(four, counts, places, MPI_INT, in[3], counts, places, MPI_INT, ring);
    CALL(MPI_Neighbor_alltoallw)(four, counts, byte_places, types, in[4], counts, byte_places, types, ring);
    for (int i = 0; i < 5; i++)
        EXPECT(in[i][0] == left && in[i][1] == right);

    memset(in, -1, sizeof in);
    CALL(MPI_Ineighbor_allgather)(&rank, 1, MPI_INT, in[0], 1, MPI_INT, ring, &requests[0]);
    CALL(MPI_Ineighbor_allgatherv)(&rank, 1, MPI_INT, in[1], counts, places, MPI_INT, ring, &requests[1]);
    CALL(MPI_Ineighbor_alltoall)(four, 1, MPI_INT, in[2], 1, MPI_INT, ring, &requests[2]);
    CALL(MPI_Ineighbor_alltoallv)(four, counts, places, MPI_INT, in[3], counts, places, MPI_INT, ring, &requests[3]);
    CALL(MPI_Ineighbor_alltoallw)
    (four, counts, byte_places, types, in[4], counts, byte_places, types, ring, &requests[4]);
    CALL(MPI_Waitall)(5, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 5; i++)
        EXPECT(in[i][0] == left && in[i][1] == right);
}

void neighbourhoods(void) {
    MPI_Comm ring, graph;
    int dims[1] = {4}, periods[1] = {1}, coordinates[1], source, target, number, neighbours[2] = {left, right};
    int indegree, outdegree, weighted;
    CALL(MPI_Dims_create)(4, 1, dims);
    CALL(MPI_Cart_create)(MPI_COMM_WORLD, 1, dims, periods, 0, &ring);
    CALL(MPI_Cartdim_get)(ring, &number);
    CALL(MPI_Cart_coords)(ring, rank, 1, coordinates);
    CALL(MPI_Cart_rank)(ring, coordinates, &number);
    CALL(MPI_Cart_shift)(ring, 0, 1, &source, &target);
    CALL(MPI_Topo_test)(ring, &weighted);
    EXPECT(number == rank && source == left && target == right && weighted == MPI_CART);
    exchange(ring);
    CALL(MPI_Comm_free)(&ring);

    CALL(MPI_Dist_graph_create_adjacent)
    (MPI_COMM_WORLD, 2, neighbours, MPI_UNWEIGHTED, 2, neighbours, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    CALL(MPI_Dist_graph_neighbors_count)(graph, &indegree, &outdegree, &weighted);
    EXPECT(indegree == 2 && outdegree == 2 && !weighted);
    CALL(MPI_Neighbor_allgather)(&rank, 1, MPI_INT, four, 1, MPI_INT, graph);
    EXPECT(four[0] == left && four[1] == right);
    CALL(MPI_Comm_free)(&graph);
}
