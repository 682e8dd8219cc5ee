/* stacks MODE [N]: callbacks of MPI that go on on another stack, where they call MPI. Everything between MPI_Init and MPI_Finalize
 * runs on a stack in one half of a mapping; N times (default 10) an attribute is deleted from MPI_COMM_SELF, and its delete
 * callback goes on
 *
 *   up       by swapcontext on a stack above, in the other half
 *   down     by swapcontext on a stack below
 *   signal   in a signal handler on an alternate stack above
 *
 * and there calls MPI_Comm_size and MPI_Allreduce on MPI_COMM_SELF. With
 *
 *   jump     it is the error handler of a send to an invalid rank that makes these calls; then it leaves MPI_Send by longjmp to a
 *            frame far above, which calls MPI_Comm_get_parent
 *
 * Calls per rank: Init, Comm_rank, Comm_create_keyval, Comm_free_keyval, Barrier, Finalize 1; Comm_set_attr N, Comm_delete_attr N;
 * as inner calls Comm_size N, Allreduce N. With jump, instead of those for attributes, Comm_create_errhandler, Comm_set_errhandler,
 * Errhandler_free 1, Send N, none of which returns, Comm_get_parent N.
 *
 * Gate: 1 after MPI_Init. */
#define _GNU_SOURCE
#include "../gate.h"

#include <mpi.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

/* The last page of each stack stays free: whoever passes a call on may copy more of the stack than there are arguments. */
enum { HALF = 1 << 20, STACK = HALF - 4096 };

static const char *mode;
static int count, right;
static char *mapping;
static ucontext_t outside, program, callback;
static jmp_buf before_call;

static void calls(void) {
    int size = 0, one = 1, sum = 0;
    MPI_Comm_size(MPI_COMM_SELF, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    right += size == 1 && sum == 1;
}

static void on_signal(int number) {
    (void)number;
    calls();
}

static int deleted(MPI_Comm communicator, int keyval, void *value, void *state) {
    static ucontext_t here;
    (void)communicator, (void)keyval, (void)value, (void)state;
    if (strcmp(mode, "signal") == 0) {
        raise(SIGUSR1);
    } else {
        getcontext(&callback);
        callback.uc_stack.ss_sp = strcmp(mode, "up") == 0 ? mapping + HALF : mapping;
        callback.uc_stack.ss_size = STACK;
        callback.uc_link = &here;
        makecontext(&callback, calls, 0);
        swapcontext(&here, &callback);
    }
    return MPI_SUCCESS;
}

static void attributes(void) {
    int keyval;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &keyval, NULL);
    for (int i = 0; i < count; i++) {
        MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &count);
        MPI_Comm_delete_attr(MPI_COMM_SELF, keyval);
    }
    MPI_Comm_free_keyval(&keyval);
}

static void leave(MPI_Comm *communicator, int *code, ...) {
    (void)communicator, (void)code;
    calls();
    longjmp(before_call, 1);
}

/* Deep below the frame that is jumped to, so that nothing overwrites soon what is on the stack there. */
static __attribute__((noinline)) void fail_below(char *volatile room) {
    char more[4096];
    room = more;
    room[0] = 0;
    MPI_Send(room, 1, MPI_CHAR, 1000000, 0, MPI_COMM_SELF);
    room[1] = 0;
}

static void jumps(void) {
    static int i;
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    for (i = 0; i < count; i++) {
        if (setjmp(before_call) == 0) {
            fail_below(NULL);
        } else {
            MPI_Comm parent;
            MPI_Comm_get_parent(&parent);
        }
    }
    MPI_Errhandler_free(&handler);
}

static void run(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gate(1);
    if (strcmp(mode, "jump") == 0)
        jumps();
    else
        attributes();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("stacks %s: %d of %d right\n", mode, right, count);
}

int main(int argc, char **argv) {
    mode = argc > 1 ? argv[1] : "up";
    count = argc > 2 ? atoi(argv[2]) : 10;
    mapping = mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (mapping == MAP_FAILED)
        return 2;
    MPI_Init(&argc, &argv);
    const int is_down = strcmp(mode, "down") == 0;
    if (strcmp(mode, "signal") == 0) {
        stack_t stack = {.ss_sp = mapping + HALF, .ss_size = STACK};
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
        sigaltstack(&stack, NULL);
        sigaction(SIGUSR1, &action, NULL);
    }
    getcontext(&program);
    program.uc_stack.ss_sp = is_down ? mapping + HALF : mapping;
    program.uc_stack.ss_size = STACK;
    program.uc_link = &outside;
    makecontext(&program, run, 0);
    swapcontext(&outside, &program);
    MPI_Finalize();
    return right == count ? 0 : 1;
}
