/* Amounts beyond 32 bits, without the memory for them; and the functions with large counts where MPI has them. */
#include "semantics.h"

#include <stdint.h>
#include <sys/mman.h>

static int out[64], in[64];

/* To oneself, a broadcast or a reduction in place has nothing to do. Five times 2^30 bytes. */
static void beyond_32_bits(void) {
    size_t giga = (size_t)1 << 30;
    void *memory = mmap(NULL, 5 * giga, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    MPI_Datatype block;
    MPI_Type_contiguous(1 << 30, MPI_BYTE, &block);
    MPI_Type_commit(&block);
    EXPECT(memory != MAP_FAILED);
    MPI_Bcast(memory, 5, block, 0, MPI_COMM_SELF);
    MPI_Allreduce(MPI_IN_PLACE, memory, 1 << 29, MPI_LONG, MPI_SUM, MPI_COMM_SELF); /* 2^32 bytes */
#if MPI_VERSION >= 4
    MPI_Bcast_c(memory, (MPI_Count)5 << 30, MPI_BYTE, 0, MPI_COMM_SELF);
#endif
    MPI_Type_free(&block);
    munmap(memory, 5 * giga);
}

#if MPI_VERSION >= 4
static void messages(void) {
    MPI_Status status;
    MPI_Request requests[2];
    MPI_Message message;
    fill(out, 16, rank, 1);
    IN_TURNS(MPI_Send_c(out, 10, MPI_INT, right, 1, MPI_COMM_WORLD),
             MPI_Recv_c(in, 16, MPI_INT, left, 1, MPI_COMM_WORLD, &status));
    check(in, 10, left, 1);
    IN_TURNS(MPI_Ssend_c(out, 3, MPI_INT, right, 1, MPI_COMM_WORLD),
             MPI_Recv_c(in, 4, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MPI_Sendrecv_c(out, 5, MPI_INT, right, 2, in, 6, MPI_INT, left, 2, MPI_COMM_WORLD, &status);
    MPI_Sendrecv_replace_c(in, 5, MPI_INT, partner, 3, partner, 3, MPI_COMM_WORLD, &status);
    MPI_Irecv_c(in, 16, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend_c(out, 7, MPI_INT, right, 4, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Recv_init_c(in, 16, MPI_INT, left, 5, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init_c(out, 8, MPI_INT, right, 5, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 2; i++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Isend_c(out, 6, MPI_INT, right, 6, MPI_COMM_WORLD, &requests[0]);
    MPI_Mprobe(left, 6, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv_c(in, 6, MPI_INT, &message, &status);
    MPI_Wait(&requests[0], &status);
    /* No MPI_Isendrecv: MPICH 4.0.2 leaves its status as the request's last user had it. */
}

static void collectives_with_large_counts(void) {
    MPI_Count counts[4] = {1, 2, 3, 4};
    MPI_Aint places[4] = {0, 1, 3, 6}, bytes[4] = {0, 16, 32, 48};
    MPI_Count twos[4] = {2, 2, 2, 2};
    MPI_Datatype types[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
    MPI_Request request;
    MPI_Bcast_c(in, 5, MPI_INT, 2, MPI_COMM_WORLD);
    MPI_Allreduce_c(out, in, 3, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Reduce_c(out, in, 3, MPI_INT, MPI_MAX, 1, MPI_COMM_WORLD);
    MPI_Gatherv_c(out, counts[rank], MPI_INT, in, counts, places, MPI_INT, 3, MPI_COMM_WORLD);
    MPI_Scatterv_c(out, counts, places, MPI_INT, in, counts[rank], MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allgather_c(out, 2, MPI_INT, in, 2, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgatherv_c(out, counts[rank], MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoallw_c(out, twos, bytes, types, in, twos, bytes, types, MPI_COMM_WORLD);
    MPI_Reduce_scatter_c(out, in, counts, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Ialltoallv_c(out, twos, places, MPI_INT, in, twos, bytes, MPI_INT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void types_and_windows(void) {
    MPI_Datatype type;
    MPI_Win window;
    int memory[16] = {0};
    MPI_Type_contiguous_c(3, MPI_SHORT, &type);
    MPI_Type_commit(&type);
    MPI_Sendrecv(out, 4, type, right, 9, in, 5, type, left, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
    MPI_Win_create_c(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put_c(out, 4, MPI_INT, right, 0, 4, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Get_c(in, 3, MPI_INT, left, 0, 3, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

static void partitioned(void) {
    enum { PARTITIONS = 4, WORDS = 3 };
    MPI_Request requests[2];
    int arrived;
    MPI_Precv_init(in, PARTITIONS, WORDS, MPI_INT, left, 10, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Psend_init(out, PARTITIONS, WORDS, MPI_INT, right, 10, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    for (int i = 0; i < 2; i++) {
        int list[2] = {0, 2};
        MPI_Startall(2, requests);
        MPI_Pready(1, requests[1]);
        MPI_Pready_list(2, list, requests[1]);
        MPI_Pready_range(3, 3, requests[1]);
        MPI_Parrived(requests[0], 0, &arrived);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    check(in, PARTITIONS * WORDS, left, 1);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void large_count_functions(void) {
    messages();
    collectives_with_large_counts();
    types_and_windows();
    partitioned();
}
#else
static void large_count_functions(void) {
    (void)out, (void)in;
}
#endif

static void use(void) {
    beyond_32_bits();
    large_count_functions();
}

const struct section large = {"large", NULL, use, NULL};
