// ring_cxx [iterations]: messages round a ring, through the C++ bindings (MPI::, removed in MPI-3.0 but still shipped).
//
// Calls per rank for N iterations (default 20): Init, Comm_rank, Comm_size, Bcast, Finalize 1; Send, Recv, Isend, Irecv,
// Waitall, Sendrecv, Allreduce N; Barrier in every tenth. Gates: 1 after MPI_Init, 3 before MPI_Finalize.
#include "gate.h"

#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <vector>

static void expect(long got, long wanted, int iteration) {
    if (got == wanted)
        return;
    std::fprintf(stderr, "ring_cxx: iteration %d: %ld is not %ld\n", iteration, got, wanted);
    MPI::COMM_WORLD.Abort(1);
}

int main(int argc, char **argv) {
    int iterations = argc > 1 ? std::atoi(argv[1]) : 20;
    MPI::Init(argc, argv);
    const int rank = MPI::COMM_WORLD.Get_rank(), ranks = MPI::COMM_WORLD.Get_size();
    gate(1);
    MPI::COMM_WORLD.Bcast(&iterations, 1, MPI::INT, 0);
    const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    for (int iteration = 0; iteration < iterations; iteration++) {
        int token = iteration;
        if (rank == 0)
            MPI::COMM_WORLD.Send(&token, 1, MPI::INT, right, 1);
        MPI::COMM_WORLD.Recv(&token, 1, MPI::INT, left, 1);
        expect(token, iteration + left, iteration);
        token++;
        if (rank != 0)
            MPI::COMM_WORLD.Send(&token, 1, MPI::INT, right, 1);

        std::vector<int> out(16384, rank * 1000 + iteration), in(16384);
        MPI::Request requests[2];
        requests[0] = MPI::COMM_WORLD.Irecv(in.data(), 16384, MPI::INT, left, 2);
        requests[1] = MPI::COMM_WORLD.Isend(out.data(), 16384, MPI::INT, right, 2);
        MPI::Request::Waitall(2, requests);
        for (int word : in)
            expect(word, left * 1000 + iteration, iteration);

        MPI::COMM_WORLD.Sendrecv(out.data(), 1024, MPI::INT, left, 3, in.data(), 1024, MPI::INT, right, 3);
        expect(in[1023], right * 1000 + iteration, iteration);

        int sum;
        MPI::COMM_WORLD.Allreduce(&rank, &sum, 1, MPI::INT, MPI::SUM);
        expect(sum, ranks * (ranks - 1) / 2, iteration);
        if (iteration % 10 == 9)
            MPI::COMM_WORLD.Barrier();
    }
    gate(3);
    MPI::Finalize();
    if (rank == 0)
        std::printf("ring_cxx: %d ranks, %d iterations, all messages correct\n", ranks, iterations);
    return 0;
}
