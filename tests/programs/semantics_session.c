/* semantics_session: messages without MPI_COMM_WORLD, by a session (MPI_Session_init instead of MPI_Init) where MPI has them. Each
 * rank sends 7 ints to the right in a communicator "of a session", reversed so that its ranks are not the world's, and all of them
 * reduce 3 doubles. (One session only: MPICH 4.0.2 cannot begin another one after the last has ended.) Gates: 1 after the session
 * began, 2 when its communicator exists, 3 before it is freed. Exit status 1 on wrong data. */
#include "gate.h"

#include <mpi.h>

static void use(MPI_Comm comm) {
    int rank, size, out[7], in[7];
    double three[3] = {1, 2, 3}, sum[3];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < 7; i++)
        out[i] = rank * 10 + i;
    MPI_Sendrecv(out, 7, MPI_INT, (rank + 1) % size, 1, in, 7, MPI_INT, (rank + size - 1) % size, 1, comm,
                 MPI_STATUS_IGNORE);
    MPI_Allreduce(three, sum, 3, MPI_DOUBLE, MPI_SUM, comm);
    if (in[6] != (rank + size - 1) % size * 10 + 6 || sum[2] != 3 * size) {
        fprintf(stderr, "semantics_session: rank %d: wrong data\n", rank);
        MPI_Abort(comm, 1);
    }
}

static void with_gates(MPI_Comm comm) {
    MPI_Comm_set_name(comm, "of a session");
    gate(2);
    use(comm);
    gate(3);
    MPI_Comm_free(&comm);
}

static MPI_Group reversed(MPI_Group world) {
    int range[1][3] = {{3, 0, -1}};
    MPI_Group group;
    MPI_Group_range_incl(world, 1, range, &group);
    MPI_Group_free(&world);
    return group;
}

int main(int argc, char **argv) {
    MPI_Group group;
    MPI_Comm comm;
#if MPI_VERSION >= 4
    (void)argc, (void)argv;
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    gate(1);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    group = reversed(group);
    MPI_Comm_create_from_group(group, "semantics", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
#else
    MPI_Init(&argc, &argv);
    gate(1);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    group = reversed(group);
    MPI_Comm_create(MPI_COMM_WORLD, group, &comm);
#endif
    MPI_Group_free(&group);
    with_gates(comm);
#if MPI_VERSION >= 4
    MPI_Session_finalize(&session);
#else
    MPI_Finalize();
#endif
    printf("semantics_session: all data correct\n");
    return 0;
}
