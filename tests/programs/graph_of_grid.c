/* graph_of_grid: a distributed graph that is made out of a communicator with a grid, of which Open MPI 5.0 says that it is a grid itself. Each rank
 * calls MPI_Barrier over it ROUNDS times. */
#include <mpi.h>

enum { ROUNDS = 5 };

int main(int argc, char **argv) {
    int rank, size, sides[1], periodic[1] = {1};
    MPI_Comm grid, graph;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sides[0] = size;
    MPI_Cart_create(MPI_COMM_WORLD, 1, sides, periodic, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Dist_graph_create_adjacent(grid, 1, &left, MPI_UNWEIGHTED, 1, &right, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    for (int round = 0; round < ROUNDS; round++)
        MPI_Barrier(graph);
    MPI_Finalize();
}
