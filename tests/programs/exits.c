/* exits MODE: after Init, Comm_rank and ten allreduces per rank, the job ends in one of the ways that jobs end:
 *
 *   finalize        as it should (Finalize 1)
 *   no-finalize     all ranks exit with status 0 without MPI_Finalize
 *   abort           rank 1 calls MPI_Abort with code 3 and does not return; the others wait in MPI_Barrier
 *   segfault        rank 1 dies of SIGSEGV; the others wait in MPI_Barrier
 *   fails           as finalize, but rank 1 exits with status 3 then
 *   exec-before     each rank executes this program again with mode finalize before it calls any MPI function
 *   exec-after      after MPI_Finalize, each rank executes this program again with mode none (no MPI at all)
 *   exec-thread     as exec-after, but it is a thread that executes it, after it has called MPI_Finalized five times
 *   fork            each rank forks a child that calls no MPI and is waited for; then as finalize
 *   longjmp         ten sends to an invalid rank whose error handler leaves MPI_Send by longjmp (Send 10, none of them
 *                   returns; Comm_create_errhandler, Comm_set_errhandler, Errhandler_free 1), one more allreduce, Finalize
 *   callback        as finalize, with an attribute whose delete callback calls MPI_Comm_size inside MPI_Comm_delete_attr
 *                   (Comm_create_keyval, Comm_set_attr, Comm_delete_attr, Comm_free_keyval 1; Comm_size only as an inner call)
 *
 * Gates: 1 after MPI_Init, 2 after the allreduces, 3 (exec-after and exec-thread) after MPI_Finalize. */
#include "gate.h"

#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

static int rank;
static jmp_buf before_send;

static void allreduces(int count) {
    for (int i = 0; i < count; i++) {
        int sum;
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
}

static void execute(char **argv, char *mode) {
    argv[1] = mode;
    execv(argv[0], argv); /* so that it keeps its name */
    perror("exits: exec");
    exit(1);
}

static void *execute_in_thread(void *argv) {
    for (int i = 0; i < 5; i++) {
        int flag;
        MPI_Finalized(&flag);
    }
    execute(argv, "none");
    return NULL;
}

static void leave(MPI_Comm *communicator, int *code, ...) {
    (void)communicator, (void)code;
    longjmp(before_send, 1);
}

static void failing_sends(int count) {
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    volatile int sent = 0;
    setjmp(before_send);
    if (sent < count) {
        sent = sent + 1;
        MPI_Send(&rank, 1, MPI_INT, 1000000, 0, MPI_COMM_WORLD);
    }
    MPI_Errhandler_free(&handler);
}

static int deleted(MPI_Comm communicator, int keyval, void *value, void *state) {
    int size;
    (void)keyval, (void)value, (void)state;
    return MPI_Comm_size(communicator, &size);
}

static void attribute(void) {
    int keyval;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &rank);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval);
    MPI_Comm_free_keyval(&keyval);
}

int main(int argc, char **argv) {
    char *mode = argc > 1 ? argv[1] : "finalize";
    if (strcmp(mode, "none") == 0)
        return 0;
    if (strcmp(mode, "exec-before") == 0)
        execute(argv, "finalize");

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gate(1);
    allreduces(10);
    gate(2);

    if (strcmp(mode, "no-finalize") == 0)
        exit(0);
    if (strcmp(mode, "abort") == 0 && rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (strcmp(mode, "segfault") == 0 && rank == 1) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
    if (strcmp(mode, "abort") == 0 || strcmp(mode, "segfault") == 0)
        MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(mode, "fork") == 0) {
        pid_t child = fork();
        if (child == 0)
            _exit(7);
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (strcmp(mode, "longjmp") == 0) {
        failing_sends(10);
        allreduces(1);
    }
    if (strcmp(mode, "callback") == 0)
        attribute();

    MPI_Finalize();
    if (strncmp(mode, "exec-", 5) == 0)
        gate(3);
    if (strcmp(mode, "exec-after") == 0)
        execute(argv, "none");
    if (strcmp(mode, "exec-thread") == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, execute_in_thread, argv) != 0)
            return 1;
        pthread_join(thread, NULL);
    }
    if (strcmp(mode, "fails") == 0 && rank == 1)
        return 3;
    return 0;
}
