// causes_cxx: ranks that wait for each other in a member function of a template, which an exception has led to. Three ranks; ends only
// when it is killed.
//
// Calls per rank: Init, Comm_rank 1; then open for ever: Recv.
#include "../gate.h"

#include <mpi.h>
#include <stdexcept>
#include <vector>

namespace halo {

template <typename T> class Exchange {
public:
    explicit Exchange(int rank) : rank(rank), values(4) {}

    void from_left() {
        MPI_Recv(values.data(), static_cast<int>(values.size()), MPI_DOUBLE, (rank + 2) % 3, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        values[0] += 1;
    }

private:
    int rank;
    std::vector<T> values;
};

} // namespace halo

static void step(int rank) {
    try {
        throw std::runtime_error("no values yet");
    } catch (const std::exception &) {
        halo::Exchange<double> exchange(rank);
        exchange.from_left();
    }
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gate(1);
    step(rank);
    MPI_Finalize();
    return 0;
}
