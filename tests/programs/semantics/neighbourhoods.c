/* Neighbourhood collectives over all topologies, with other numbers of sources than of destinations. */
#include "semantics.h"

static MPI_Comm line, copy, plane, row, graph, tree, alone;
static int out[64], in[64];

static void make(void) {
    int size = 4, open = 0, ends[4] = {3, 4, 5, 6}, edges[6] = {1, 2, 3, 0, 0, 0}; /* a star around 0 */
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &open, 0, &line); /* the ends have nobody on one side */
    MPI_Comm_dup(line, &copy);
    /* Open in one direction, where each part of it is open, too. */
    int sides[3] = {2, 1, 2}, rings[3] = {0, 1, 0}, kept[3] = {0, 1, 1};
    MPI_Cart_create(MPI_COMM_WORLD, 3, sides, rings, 0, &plane);
    MPI_Cart_sub(plane, kept, &row);
    MPI_Graph_create(MPI_COMM_WORLD, 4, ends, edges, 0, &graph);
    /* From every rank to all that are greater: rank destinations at the left, 3 - rank at the right. */
    int sources[3] = {0, 1, 2}, destinations[3];
    for (int i = 0; i < 3 - rank; i++)
        destinations[i] = rank + 1 + i;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank, sources, MPI_UNWEIGHTED, 3 - rank, destinations,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &tree);
    MPI_Comm_set_name(tree, "tree");
    /* Each alone, in two directions, one of which comes back to it. */
    int ones[2] = {1, 1}, ring[2] = {0, 1};
    MPI_Cart_create(MPI_COMM_SELF, 2, ones, ring, 0, &alone);
}

static void blocking(MPI_Comm comm) {
    int ones[6] = {1, 1, 1, 1, 1, 1}, twos[6] = {2, 2, 2, 2, 2, 2}, places[6] = {0, 4, 8, 12, 16, 20};
    MPI_Aint bytes[6] = {0, 16, 32, 48, 64, 80};
    MPI_Datatype types[6] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT, MPI_INT, MPI_INT};
    fill(out, 16, rank, 1);
    MPI_Neighbor_allgather(out, 2, MPI_INT, in, 2, MPI_INT, comm);
    MPI_Neighbor_allgatherv(out, 2, MPI_INT, in, twos, places, MPI_INT, comm);
    MPI_Neighbor_alltoall(out, 3, MPI_INT, in, 3, MPI_INT, comm);
    MPI_Neighbor_alltoallv(out, ones, places, MPI_INT, in, ones, places, MPI_INT, comm);
    /* MPICH 4.0.2 now and then loses a message of this one if a process has no destination. */
    if (comm != tree)
        MPI_Neighbor_alltoallw(out, twos, bytes, types, in, twos, bytes, types, comm);
}

static void nonblocking(MPI_Comm comm) {
    int ones[6] = {1, 1, 1, 1, 1, 1}, twos[6] = {2, 2, 2, 2, 2, 2}, places[6] = {0, 4, 8, 12, 16, 20};
    MPI_Aint bytes[6] = {0, 16, 32, 48, 64, 80};
    MPI_Datatype types[6] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT, MPI_INT, MPI_INT};
    MPI_Request requests[5];
    static int into[5][64];
    MPI_Ineighbor_allgather(out, 2, MPI_INT, into[0], 2, MPI_INT, comm, &requests[0]);
    MPI_Ineighbor_allgatherv(out, 2, MPI_INT, into[1], twos, places, MPI_INT, comm, &requests[1]);
    MPI_Ineighbor_alltoall(out, 3, MPI_INT, into[2], 3, MPI_INT, comm, &requests[2]);
    MPI_Ineighbor_alltoallv(out, ones, places, MPI_INT, into[3], ones, places, MPI_INT, comm, &requests[3]);
    requests[4] = MPI_REQUEST_NULL;
    if (comm != tree)
        MPI_Ineighbor_alltoallw(out, twos, bytes, types, into[4], twos, bytes, types, comm, &requests[4]);
    MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
}

#if MPI_VERSION >= 4
static void persistent(MPI_Comm comm) {
    int ones[6] = {1, 1, 1, 1, 1, 1}, twos[6] = {2, 2, 2, 2, 2, 2}, places[6] = {0, 4, 8, 12, 16, 20};
    MPI_Aint bytes[6] = {0, 16, 32, 48, 64, 80};
    MPI_Datatype types[6] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT, MPI_INT, MPI_INT};
    const MPI_Info no = MPI_INFO_NULL;
    MPI_Request requests[5];
    static int into[5][64];
    MPI_Neighbor_allgather_init(out, 2, MPI_INT, into[0], 2, MPI_INT, comm, no, &requests[0]);
    MPI_Neighbor_allgatherv_init(out, 2, MPI_INT, into[1], twos, places, MPI_INT, comm, no, &requests[1]);
    MPI_Neighbor_alltoall_init(out, 3, MPI_INT, into[2], 3, MPI_INT, comm, no, &requests[2]);
    MPI_Neighbor_alltoallv_init(out, ones, places, MPI_INT, into[3], ones, places, MPI_INT, comm, no, &requests[3]);
    MPI_Neighbor_alltoallw_init(out, twos, bytes, types, into[4], twos, bytes, types, comm, no, &requests[4]);
    MPI_Startall(5, requests);
    MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 5; i++)
        MPI_Request_free(&requests[i]);
}
#else
static void persistent(MPI_Comm comm) {
    (void)comm;
}
#endif

static void use(void) {
    blocking(line);
    blocking(copy);
    blocking(plane);
    blocking(row);
    blocking(alone);
    blocking(graph);
    memset(in, 0, sizeof in);
    blocking(tree);
    for (int i = 0; i < rank; i++) /* the last of them, to the destination's place in the sender's list */
        EXPECT(in[4 * i] == i * 100000 + 1000 + 4 * (rank - i - 1));
    nonblocking(line);
    nonblocking(plane);
    nonblocking(tree);
#ifndef D
    persistent(line);
    persistent(plane);
#endif
}

static void release(void) {
    MPI_Comm_free(&line);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&plane);
    MPI_Comm_free(&row);
    MPI_Comm_free(&alone);
    MPI_Comm_free(&graph);
    MPI_Comm_free(&tree);
}

const struct section neighbourhoods = {"neighbourhoods", make, use, release};
