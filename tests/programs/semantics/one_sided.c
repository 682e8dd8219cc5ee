/* One-sided accesses: every function, over the world and over a communicator with other ranks. */
#include "semantics.h"

static MPI_Comm reversed;
static MPI_Win window, small;
static int *memory, behind[16];

static void make(void) {
    MPI_Win_allocate(64 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_set_name(window, "window");
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Comm_set_name(reversed, "reversed");
    MPI_Win_create(behind, sizeof behind, sizeof(int), MPI_INFO_NULL, reversed, &small);
}

static void with_fences(void) {
    int mine[8], got[8];
    MPI_Datatype sparse;
    MPI_Type_vector(4, 1, 2, MPI_INT, &sparse);
    MPI_Type_commit(&sparse);
    fill(mine, 8, rank, 1);
    memset(memory, 0, 64 * sizeof(int));
    MPI_Win_fence(0, window);
    MPI_Put(mine, 8, MPI_INT, right, 0, 8, MPI_INT, window);
    MPI_Put(mine, 1, sparse, right, 8, 4, MPI_INT, window); /* 16 bytes, of other types here and there */
    MPI_Put(mine, 8, MPI_INT, MPI_PROC_NULL, 0, 8, MPI_INT, window);
    MPI_Win_fence(0, window);
    check(memory, 8, left, 1);
    MPI_Get(got, 3, MPI_INT, right, 0, 3, MPI_INT, window);
    MPI_Get(got, 3, MPI_INT, MPI_PROC_NULL, 0, 3, MPI_INT, window);
    MPI_Accumulate(mine, 5, MPI_INT, left, 16, 5, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    check(got, 3, rank, 1);
    MPI_Get_accumulate(mine, 2, MPI_INT, got, 2, MPI_INT, partner, 16, 2, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    /* Fetches only: what it would send is nothing. */
    MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, got, 4, MPI_INT, partner, 16, 4, MPI_INT, MPI_NO_OP, window);
    MPI_Win_fence(0, window);
    MPI_Type_free(&sparse);
}

static void with_locks(void) {
    long one = 1, got[2], place = 40;
    int words[4], back[4];
    MPI_Request requests[4];
    fill(words, 4, rank, 2);
    MPI_Win_lock_all(0, window);
    MPI_Fetch_and_op(&one, &got[0], MPI_LONG, 0, place, MPI_SUM, window);
    MPI_Fetch_and_op(NULL, &got[1], MPI_LONG, 0, place, MPI_NO_OP, window);
    MPI_Compare_and_swap(&words[0], &words[1], &words[2], MPI_INT, right, place + 2, window);
    MPI_Rput(words, 2, MPI_INT, right, 48, 2, MPI_INT, window, &requests[0]);
    MPI_Raccumulate(words, 3, MPI_INT, right, 52, 3, MPI_INT, MPI_SUM, window, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Win_flush_all(window);
    MPI_Rget(back, 4, MPI_INT, left, 0, 4, MPI_INT, window, &requests[2]);
    MPI_Rget_accumulate(words, 1, MPI_INT, back, 1, MPI_INT, right, 56, 1, MPI_INT, MPI_SUM, window, &requests[3]);
    MPI_Waitall(2, &requests[2], MPI_STATUSES_IGNORE);
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void other_ranks(void) {
    /* World rank 0 is rank 3 here. */
    int value = rank;
    MPI_Win_fence(0, small);
    MPI_Put(&value, 1, MPI_INT, 3 - right, 0, 1, MPI_INT, small);
    MPI_Win_fence(0, small);
    EXPECT(behind[0] == left);
}

static void use(void) {
    with_fences();
    with_locks();
    other_ranks();
}

static void release(void) {
    MPI_Win_free(&window);
    MPI_Win_free(&small);
    MPI_Comm_free(&reversed);
}

const struct section one_sided = {"one-sided", make, use, release};
