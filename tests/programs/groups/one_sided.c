/* Windows of all kinds; fence, post-start-complete-wait, locks, flushes; every data movement call. */
#include "groups.h"

static void fence(void) {
    int *base, zero = 0, got = -1, mine = rank;
    MPI_Win window;
    CALL(MPI_Win_allocate)(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    base[0] = base[1] = -1;
    base[2] = 100;
    CALL(MPI_Win_fence)(0, window);
    CALL(MPI_Put)(&mine, 1, MPI_INT, right, 0, 1, MPI_INT, window);
    CALL(MPI_Win_fence)(0, window);
    EXPECT(base[0] == left);
    CALL(MPI_Get)(&got, 1, MPI_INT, right, 0, 1, MPI_INT, window);
    CALL(MPI_Accumulate)(&mine, 1, MPI_INT, right, 2, 1, MPI_INT, MPI_SUM, window);
    CALL(MPI_Win_fence)(0, window);
    EXPECT(got == rank && base[2] == 100 + left);
    CALL(MPI_Get_accumulate)(&zero, 1, MPI_INT, &got, 1, MPI_INT, right, 2, 1, MPI_INT, MPI_SUM, window);
    CALL(MPI_Win_fence)(0, window);
    EXPECT(got == 100 + rank);
    CALL(MPI_Win_free)(&window);
}

static void locks(void) {
    int memory[4] = {rank, 7, 0, 0}, got = -1, one = 1, seven = 7, eight = 8;
    MPI_Win window;
    MPI_Request requests[2];
    CALL(MPI_Win_create)(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    CALL(MPI_Win_set_name)(window, "counters");

    CALL(MPI_Win_lock)(MPI_LOCK_SHARED, right, 0, window);
    CALL(MPI_Rget)(&got, 1, MPI_INT, right, 0, 1, MPI_INT, window, &requests[0]);
    CALL(MPI_Wait)(&requests[0], MPI_STATUS_IGNORE);
    EXPECT(got == right);
    CALL(MPI_Win_unlock)(right, window);

    CALL(MPI_Win_lock_all)(0, window);
    CALL(MPI_Fetch_and_op)(&one, &got, MPI_INT, right, 2, MPI_SUM, window);
    CALL(MPI_Win_flush)(right, window);
    EXPECT(got == 0);
    CALL(MPI_Compare_and_swap)(&eight, &seven, &got, MPI_INT, right, 1, window);
    CALL(MPI_Win_flush_local)(right, window);
    EXPECT(got == 7);
    CALL(MPI_Rput)(&rank, 1, MPI_INT, right, 3, 1, MPI_INT, window, &requests[0]);
    CALL(MPI_Wait)(&requests[0], MPI_STATUS_IGNORE);
    CALL(MPI_Win_flush_all)(window);
    CALL(MPI_Raccumulate)(&one, 1, MPI_INT, right, 2, 1, MPI_INT, MPI_SUM, window, &requests[0]);
    CALL(MPI_Rget_accumulate)
    (&one, 1, MPI_INT, &got, 1, MPI_INT, right, 2, 1, MPI_INT, MPI_SUM, window, &requests[1]);
    CALL(MPI_Waitall)(2, requests, MPI_STATUSES_IGNORE);
    CALL(MPI_Win_flush_local_all)(window);
    CALL(MPI_Win_sync)(window);
    CALL(MPI_Win_unlock_all)(window);

    CALL(MPI_Barrier)(MPI_COMM_WORLD);
    CALL(MPI_Win_lock)(MPI_LOCK_EXCLUSIVE, rank, 0, window);
    EXPECT(memory[1] == 8 && memory[2] == 3 && memory[3] == left);
    CALL(MPI_Win_unlock)(rank, window);
    CALL(MPI_Win_free)(&window);
}

static void post_start_complete_wait(void) {
    int memory[1] = {-1}, flag;
    MPI_Win window;
    MPI_Group world, from, to;
    CALL(MPI_Comm_group)(MPI_COMM_WORLD, &world);
    CALL(MPI_Group_incl)(world, 1, &left, &from);
    CALL(MPI_Group_incl)(world, 1, &right, &to);
    CALL(MPI_Win_create)(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    CALL(MPI_Win_post)(from, 0, window);
    CALL(MPI_Win_start)(to, 0, window);
    /* To nobody: inside such an epoch, MPICH 4.0.2 over UCX writes to the wrong rank. */
    CALL(MPI_Put)(&rank, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, window);
    CALL(MPI_Win_complete)(window);
    CALL(MPI_Win_wait)(window);

    /* An exposure to nobody is over at once. */
    CALL(MPI_Win_post)(MPI_GROUP_EMPTY, 0, window);
    CALL(MPI_Win_test)(window, &flag);
    EXPECT(flag);
    CALL(MPI_Win_free)(&window);
    CALL(MPI_Group_free)(&from);
    CALL(MPI_Group_free)(&to);
    CALL(MPI_Group_free)(&world);
}

static void shared_memory(void) {
    int *mine, *theirs, unit;
    MPI_Aint bytes;
    MPI_Win window;
    CALL(MPI_Win_allocate_shared)(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window);
    CALL(MPI_Win_lock_all)(MPI_MODE_NOCHECK, window);
    *mine = rank * 3;
    CALL(MPI_Win_sync)(window);
    CALL(MPI_Barrier)(MPI_COMM_WORLD);
    CALL(MPI_Win_shared_query)(window, right, &bytes, &unit, &theirs);
    EXPECT(*theirs == right * 3 && bytes == sizeof(int));
    CALL(MPI_Win_unlock_all)(window);
    CALL(MPI_Barrier)(MPI_COMM_WORLD);
    CALL(MPI_Win_free)(&window);
}

void one_sided(void) {
    fence();
    locks();
    post_start_complete_wait();
    shared_memory();
}
