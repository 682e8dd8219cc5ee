/* Communicators of every kind: named and not, with other ranks than the world's, freed and made again, with two groups. */
#include "semantics.h"

static MPI_Comm copy, half, reversed, few, grid, row, graph, bridge;
static int out[16], in[64];

static void make(void) {
    int grid_size[2] = {2, 2}, periodic[2] = {1, 0}, keep[2] = {0, 1};
    int ends[4] = {2, 4, 6, 8}, edges[8] = {1, 3, 0, 2, 1, 3, 2, 0}, members[2] = {3, 1};
    MPI_Group world, chosen;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_set_name(copy, "copy");
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_set_name(half, rank % 2 ? "odd" : "even");
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed); /* unnamed */
    few = MPI_COMM_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, members, &chosen);
    if (rank % 2 == 1)
        MPI_Comm_create_group(MPI_COMM_WORLD, chosen, 1, &few);
    MPI_Group_free(&chosen);
    MPI_Group_free(&world);
    MPI_Cart_create(MPI_COMM_WORLD, 2, grid_size, periodic, 0, &grid);
    MPI_Comm_set_name(grid, "grid");
    MPI_Cart_sub(grid, keep, &row);
    MPI_Graph_create(MPI_COMM_WORLD, 4, ends, edges, 0, &graph);
    /* 0 and 2 on one side, 1 and 3 on the other. */
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 5, &bridge);
    MPI_Comm_set_name(bridge, "bridge");
}

static void messages_over(MPI_Comm comm, int count) {
    int me, size;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
    fill(out, count, rank, count);
    MPI_Sendrecv(out, count, MPI_INT, (me + 1) % size, 1, in, 16, MPI_INT, (me + size - 1) % size, 1, comm,
                 MPI_STATUS_IGNORE);
    MPI_Allreduce(MPI_IN_PLACE, in, count, MPI_INT, MPI_MAX, comm);
}

static void two_groups(MPI_Comm comm) {
    int me, others, root = rank % 2 == 0, counts[2] = {1, 2}, places[2] = {0, 1}, mine = rank / 2;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_remote_size(comm, &others);
    EXPECT(others == 2);
    MPI_Request request;
    fill(out, 12, rank, 1);
    MPI_Irecv(in, 16, MPI_INT, MPI_ANY_SOURCE, 1, comm, &request);
    MPI_Send(out, 3, MPI_INT, 1 - me, 1, comm); /* 0 to 3, 2 to 1 and back */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(in, 3, 3 - rank, 1);

    /* From world rank 2 to 1 and 3, and then the other way round. */
    int sender = rank == 2 ? MPI_ROOT : rank == 0 ? MPI_PROC_NULL : 1;
    MPI_Bcast(rank == 2 ? out : in, 4, MPI_INT, sender, comm);
    MPI_Scatter(out, 2, MPI_INT, in, 2, MPI_INT, sender, comm);
    int taker = rank == 3 ? MPI_ROOT : rank == 1 ? MPI_PROC_NULL : 1;
    MPI_Gather(out, 5, MPI_INT, in, 5, MPI_INT, taker, comm);
    MPI_Gatherv(out, counts[mine], MPI_INT, in, counts, places, MPI_INT, taker, comm);
    MPI_Reduce(out, in, 6, MPI_INT, MPI_MAX, taker, comm);
    /* Different amounts in the two directions. */
    MPI_Allgather(out, root ? 2 : 3, MPI_INT, in, root ? 3 : 2, MPI_INT, comm);
    MPI_Alltoall(out, root ? 1 : 4, MPI_INT, in, root ? 4 : 1, MPI_INT, comm);
    MPI_Allreduce(out, in, 3, MPI_INT, MPI_MAX, comm);
    MPI_Reduce_scatter_block(out, in, 2, MPI_INT, MPI_MAX, comm);
    MPI_Barrier(comm);
}

/* Handles are used again at once, for communicators of other members. */
static void reused(void) {
    for (int i = 0; i < 12; i++) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, i % 3 == 0 ? rank / 2 : i % 3 == 1 ? rank % 2 : 0, i % 2 ? -rank : rank, &comm);
        if (i % 4 == 3)
            MPI_Comm_set_name(comm, "named later");
        messages_over(comm, 1 + i % 5);
        MPI_Comm_free(&comm);
    }
}

/* A name that comes after the first messages. */
static void renamed(void) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    messages_over(comm, 2);
    MPI_Comm_set_name(comm, "first name");
    messages_over(comm, 3);
    MPI_Comm_set_name(comm, "last name");
    MPI_Comm_free(&comm);
}

static void merged(void) {
    MPI_Comm comm;
    MPI_Intercomm_merge(bridge, rank % 2, &comm); /* the order is 0 2 1 3 */
    messages_over(comm, 5);
    MPI_Comm_free(&comm);
    MPI_Request request;
    MPI_Comm_idup(copy, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    messages_over(comm, 4);
    MPI_Comm_free(&comm);
}

static void use(void) {
    messages_over(copy, 1);
    messages_over(half, 2);
    messages_over(reversed, 3);
    if (few != MPI_COMM_NULL)
        messages_over(few, 4);
    messages_over(grid, 5);
    messages_over(row, 6);
    messages_over(graph, 7);
    two_groups(bridge);
    reused();
    renamed();
    merged();
}

static void release(void) {
    MPI_Comm *all[] = {&copy, &half, &reversed, &grid, &row, &graph, &bridge, &few};
    for (int i = 0; i < 7 + (few != MPI_COMM_NULL); i++)
        MPI_Comm_free(all[i]);
}

const struct section communicators = {"communicators", make, use, release};
