/* exits MODE: after Init, Comm_rank and ten allreduces per rank, the job ends in one of the ways that jobs end:
 *
 *   finalize        as it should (Finalize 1)
 *   no-finalize     all ranks exit with status 0 without MPI_Finalize
 *   abort           rank 1 calls MPI_Abort with code 3 and does not return; the others wait in MPI_Barrier
 *   segfault        rank 1 dies of SIGSEGV; the others wait in MPI_Barrier
 *   fails           as finalize, but rank 1 exits with status 3 then
 *   quits           rank 1 ends by _exit with status 4 without MPI_Finalize; the others wait in MPI_Barrier
 *   quits-inside    the same by _Exit with status 5 in an attribute's delete callback, inside MPI_Comm_delete_attr
 *                   (Comm_create_keyval, Comm_set_attr 1)
 *   exec-before     each rank executes this program again with mode finalize before it calls any MPI function
 *   exec-after      after MPI_Finalize, each rank executes this program again with mode held (no MPI at all)
 *   exec-thread     as exec-after, but it is a thread that executes it, after it has called MPI_Finalized five times
 *   exec-early      as exec-after, but without MPI_Finalize, and with mode six; for one rank
 *   survives        each rank has children by vfork that end by _exit, and that execute what is there and what is not, and fails itself
 *                   to execute what is not there, in every way; then as finalize
 *   fork            each rank forks a child that calls no MPI and is waited for; then as finalize
 *   longjmp         ten sends to an invalid rank whose error handler leaves MPI_Send by longjmp (Send 10, none of them
 *                   returns; Comm_create_errhandler, Comm_set_errhandler, Errhandler_free 1), one more allreduce, Finalize
 *   callback        as finalize, with an attribute whose delete callback calls MPI_Comm_size inside MPI_Comm_delete_attr
 *                   (Comm_create_keyval, Comm_set_attr, Comm_delete_attr, Comm_free_keyval 1; Comm_size only as an inner call)
 *
 * What is executed with mode six ends with this status, with mode held with 0.
 *
 * Gates: 1 after MPI_Init, 2 after the allreduces, 3 (exec-after and exec-thread) after MPI_Finalize, or (survives) when no child is left,
 * 4 in the program that was executed (mode held). */
#define _GNU_SOURCE
#include "gate.h"

#include <errno.h>
#include <fcntl.h>
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
    execute(argv, "held");
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

static int quits;

static int deleted(MPI_Comm communicator, int keyval, void *value, void *state) {
    int size;
    (void)keyval, (void)value, (void)state;
    if (quits)
        _Exit(5);
    return MPI_Comm_size(communicator, &size);
}

static void attribute(void) {
    int keyval;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &rank);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval);
    MPI_Comm_free_keyval(&keyval);
}

#define NOWHERE "/nowhere/at/all"
/* A shell that ends with 3 if it has got all of its arguments, most of which do not fit into registers, and this variable. */
#define SHELL "sh", "-c", "test \"$#$1$9$WORD\" = 9aiword && exit 3", "sh", "a", "b", "c", "d", "e", "f", "g", "h", "i", (char *)NULL

static char *environment[] = {"WORD=word", "PATH=/usr/bin:/bin", NULL};

/* How a child ends that does one of these. */
static int end_of_child(int what) {
    int status = -1;
    const pid_t child = vfork();
    if (child == 0) {
        char *arguments[] = {SHELL}, *nothing[] = {NOWHERE, NULL};
        if (what == 1)
            execv(NOWHERE, nothing);
        if (what == 2)
            execl("/bin/sh", SHELL);
        if (what == 3)
            execlp("sh", SHELL);
        if (what == 4)
            execle("/bin/sh", SHELL, environment);
        if (what == 5)
            execv("/bin/sh", arguments);
        if (what == 6)
            execvp("sh", arguments);
        if (what == 7)
            execvpe("sh", arguments, environment);
        if (what == 8)
            execve("/bin/sh", arguments, environment);
        if (what == 9)
            fexecve(open("/bin/sh", O_RDONLY), arguments, environment);
        _exit(7);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void survive(void) {
    char *nothing[] = {NOWHERE, NULL};
    setenv("WORD", "word", 1);
    for (int what = 0; what < 10; what++) {
        const int status = end_of_child(what), expected = what < 2 ? 7 : 3;
        if (status != expected) {
            fprintf(stderr, "exits: child %d has ended with %d\n", what, status);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    int failed = 0;
    errno = 0;
    failed += execl(NOWHERE, NOWHERE, "1", "2", "3", "4", "5", "6", "7", (char *)NULL) == -1 && errno == ENOENT;
    errno = 0;
    failed += execlp(NOWHERE, NOWHERE, (char *)NULL) == -1 && errno == ENOENT;
    errno = 0;
    failed += execle(NOWHERE, NOWHERE, "1", (char *)NULL, environment) == -1 && errno == ENOENT;
    errno = 0;
    failed += execv(NOWHERE, nothing) == -1 && errno == ENOENT;
    errno = 0;
    failed += execvp(NOWHERE, nothing) == -1 && errno == ENOENT;
    errno = 0;
    failed += execvpe(NOWHERE, nothing, environment) == -1 && errno == ENOENT;
    errno = 0;
    failed += execve(NOWHERE, nothing, environment) == -1 && errno == ENOENT;
    if (failed != 7) {
        fprintf(stderr, "exits: %d of 7 have failed\n", failed);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int argc, char **argv) {
    char *mode = argc > 1 ? argv[1] : "finalize";
    if (strcmp(mode, "six") == 0)
        return 6;
    if (strcmp(mode, "held") == 0) {
        gate(4);
        return 0;
    }
    if (strcmp(mode, "exec-before") == 0)
        execute(argv, "finalize");

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gate(1);
    allreduces(10);
    gate(2);

    if (strcmp(mode, "no-finalize") == 0)
        exit(0);
    if (strcmp(mode, "quits") == 0 && rank == 1)
        _exit(4);
    if (strcmp(mode, "quits-inside") == 0 && rank == 1) {
        quits = 1;
        attribute();
    }
    if (strcmp(mode, "exec-early") == 0)
        execute(argv, "six");
    if (strcmp(mode, "abort") == 0 && rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (strcmp(mode, "segfault") == 0 && rank == 1) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
    if (strcmp(mode, "abort") == 0 || strcmp(mode, "segfault") == 0 || strncmp(mode, "quits", 5) == 0)
        MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(mode, "fork") == 0) {
        pid_t child = fork();
        if (child == 0)
            _exit(7);
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (strcmp(mode, "survives") == 0) {
        survive();
        gate(3);
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
        execute(argv, "held");
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
