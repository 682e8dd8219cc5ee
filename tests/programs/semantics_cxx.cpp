// semantics_cxx: the forms of calls that are most easily misread, through the C++ bindings: the same traffic as semantics_f08 and
// semantics_mpi4py. Four ranks. Gates: 1 after MPI_Init, 2 when communicators, types and persistent requests exist, 3 before they
// are freed. Exit status 1 on wrong data.
#include "gate.h"

#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <string>

static int rank;

static void expect(bool holds, int line) {
    if (holds)
        return;
    std::fprintf(stderr, "semantics_cxx: rank %d, line %d: wrong data\n", rank, line);
    MPI::COMM_WORLD.Abort(1);
}
#define EXPECT(condition) expect(condition, __LINE__)

int main(int argc, char **argv) {
    MPI::Init(argc, argv);
    MPI::Intracomm &world = MPI::COMM_WORLD;
    rank = world.Get_rank();
    EXPECT(world.Get_size() == 4);
    const int right = (rank + 1) % 4, left = (rank + 3) % 4, opposite = (rank + 2) % 4;
    const int counts[4] = {1, 2, 3, 4}, places[4] = {0, 1, 3, 6};
    int out[64], in[64], memory[16];
    double three[3] = {double(rank), double(rank), double(rank)}, got[3];
    for (int i = 0; i < 64; i++)
        out[i] = rank * 1000 + i + 1;
    gate(1);
    MPI::Intracomm half = world.Split(rank % 2, rank);
    half.Set_name("half");
    MPI::Datatype sparse = MPI::INT.Create_vector(3, 1, 2);
    sparse.Commit();
    MPI::Prequest receiving = world.Recv_init(in, 3, MPI::INT, left, 5), sending = world.Send_init(out, 3, MPI::INT, right, 5);
    gate(2);

    // The amounts are below what a library sends at once, so nobody waits for a partner here.
    MPI::Status status;
    world.Send(out, 10, MPI::INT, right, 1);
    world.Recv(in, 16, MPI::INT, left, 1, status);
    EXPECT(in[9] == left * 1000 + 10);
    world.Send(out, 2, MPI::INT, right, 2);
    world.Recv(in, 6, MPI::INT, MPI::ANY_SOURCE, 2, status);
    EXPECT(status.Get_source() == left);
    world.Send(three, 3, MPI::DOUBLE, right, 3);
    world.Recv(got, 3, MPI::DOUBLE, left, 3);
    EXPECT(got[2] == left);
    world.Send(out, 2, sparse, right, 4);
    world.Recv(in, 6, MPI::INT, left, 4);
    EXPECT(in[2] == left * 1000 + 5);
    world.Send(out, 64, MPI::INT, MPI::PROC_NULL, 4);
    MPI::Request requests[2];
    requests[0] = world.Irecv(in, 8, MPI::INT, left, 6);
    requests[1] = world.Isend(out, 5, MPI::INT, right, 6);
    MPI::Request::Waitall(2, requests);
    half.Sendrecv(out, 4, MPI::INT, 1 - rank / 2, 7, in, 4, MPI::INT, 1 - rank / 2, 7, status);
    EXPECT(in[3] == opposite * 1000 + 4);
    for (int i = 0; i < 2; i++) {
        receiving.Start();
        sending.Start();
        receiving.Wait();
        sending.Wait(status);
    }

    for (int i = 0; i < 5; i++)
        in[i] = out[i];
    world.Bcast(in, 5, MPI::INT, 2);
    EXPECT(in[4] == 2005);
    world.Allreduce(MPI::IN_PLACE, three, 3, MPI::DOUBLE, MPI::SUM);
    EXPECT(three[0] == 6);
    world.Gatherv(out, rank + 1, MPI::INT, in, counts, places, MPI::INT, 1);
    EXPECT(rank != 1 || in[9] == 3004);
    if (rank == 0)
        world.Scatter(out, 2, MPI::INT, MPI::IN_PLACE, 0, MPI::INT, 0);
    else
        world.Scatter(nullptr, 0, MPI::DATATYPE_NULL, in, 2, MPI::INT, 0);
    EXPECT(rank == 0 || in[0] == 2 * rank + 1);
    world.Alltoall(out, 2, MPI::INT, in, 2, MPI::INT);
    world.Reduce_scatter(out, in, const_cast<int *>(counts), MPI::INT, MPI::SUM);

    MPI::Win window = MPI::Win::Create(memory, sizeof memory, sizeof(int), MPI::INFO_NULL, world);
    window.Fence(0);
    window.Put(out, 3, MPI::INT, right, 0, 3, MPI::INT);
    window.Fence(0);
    EXPECT(memory[2] == left * 1000 + 3);
    window.Free();
    const char *directory = std::getenv("MPIPROBE_TRUTH_DIR");
    const std::string path = std::string(directory != nullptr ? directory : "/tmp") + "/semantics_cxx";
    MPI::File file =
        MPI::File::Open(world, path.c_str(), MPI::MODE_CREATE | MPI::MODE_RDWR | MPI::MODE_DELETE_ON_CLOSE, MPI::INFO_NULL);
    file.Write_at(rank * 64, out, 16, MPI::INT);
    file.Close();

    gate(3);
    receiving.Free();
    sending.Free();
    sparse.Free();
    half.Free();
    MPI::Finalize();
    if (rank == 0)
        std::puts("semantics_cxx: all data correct");
    return 0;
}
