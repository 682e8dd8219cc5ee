/* stays MODE: legal programs that are easily harmed, or misread, by whoever counts their calls from inside. Each rank says
 * "stays: as it should be" in the end.
 *
 *   left            an error handler leaves a send by longjmp (Send 1, does not return); then 200 allreduces from a function whose frame
 *                   is over the place where the send was, and does not write to it
 *   lower-stack     the delete function of an attribute goes on on a stack of its own in the heap and calls MPI there (Comm_delete_attr 1;
 *                   Comm_size and Allreduce 1 inside it); then 200 allreduces
 *   higher-stack    the same with a stack in main's own frame, which is above that of the call
 *   confined        a thread forbids itself, on pain of death, to open files, to make room in them, to read other memory and to ask for
 *                   its number, and then has 100 communicators (Comm_dup), 500 receives and sends under way, a named phase (Pcontrol 2), and
 *                   three threads, one after the other, with one communicator each; 103 allreduces, 103 Comm_dup
 *   bus-error       a handler that was set before MPI_Init gets a SIGBUS of the program's own, with its address, and leaves it by siglongjmp
 *   cut-short       after 50 of 100 allreduces every rank cuts the wrapper's tables to nothing, if there are any
 *
 * Gate: 1 after MPI_Init. */
#define _GNU_SOURCE
#include "../gate.h"

#include <errno.h>
#include <glob.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { STACK = 1 << 18, COMMUNICATORS = 100, REQUESTS = 500 };

static int rank;
static jmp_buf before_send;
static ucontext_t back, elsewhere;
static char *stack;

static void allreduce(MPI_Comm communicator) {
    int sum;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, communicator);
}

static __attribute__((noinline)) void allreduces(int count) {
    volatile char room[8192];
    room[0] = 1;
    for (int i = 0; i < count * room[0]; i++)
        allreduce(MPI_COMM_SELF);
}

static void leave(MPI_Comm *communicator, int *code, ...) {
    (void)communicator, (void)code;
    longjmp(before_send, 1);
}

static void left(void) {
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    if (setjmp(before_send) == 0)
        MPI_Send(&rank, 1, MPI_INT, 1000000, 0, MPI_COMM_WORLD);
    allreduces(200);
}

static void call_there(void) {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    allreduce(MPI_COMM_SELF);
    swapcontext(&elsewhere, &back);
}

static int deleted(MPI_Comm communicator, int keyval, void *value, void *state) {
    (void)communicator, (void)keyval, (void)value, (void)state;
    getcontext(&elsewhere);
    elsewhere.uc_stack.ss_sp = stack;
    elsewhere.uc_stack.ss_size = STACK;
    makecontext(&elsewhere, call_there, 0);
    return swapcontext(&back, &elsewhere);
}

static __attribute__((noinline)) void on_stack(char *which) {
    int keyval;
    stack = which;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &rank);
    MPI_Comm_delete_attr(MPI_COMM_SELF, keyval);
    MPI_Comm_free_keyval(&keyval);
    allreduces(200);
}

#define FORBIDDEN(name) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static void confine(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        FORBIDDEN(open),
        FORBIDDEN(openat),
        FORBIDDEN(creat),
        FORBIDDEN(fallocate),
        FORBIDDEN(ftruncate),
        FORBIDDEN(pwrite64),
        FORBIDDEN(process_vm_readv),
        FORBIDDEN(gettid),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("stays: seccomp");
        exit(1);
    }
}

static void *one_communicator(void *unused) {
    MPI_Comm communicator;
    (void)unused;
    MPI_Comm_dup(MPI_COMM_SELF, &communicator);
    allreduce(communicator);
    MPI_Comm_free(&communicator);
    return NULL;
}

static void run_thread(void *(*work)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) != 0 || pthread_join(thread, NULL) != 0)
        exit(1);
}

static void *confined(void *unused) {
    static MPI_Comm communicators[COMMUNICATORS];
    static MPI_Request requests[2 * REQUESTS];
    static int received[REQUESTS];
    (void)unused;
    confine();
    for (int i = 0; i < COMMUNICATORS; i++) {
        MPI_Comm_dup(MPI_COMM_SELF, &communicators[i]);
        allreduce(communicators[i]);
    }
    for (int i = 0; i < REQUESTS; i++)
        MPI_Irecv(&received[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]);
    for (int i = 0; i < REQUESTS; i++)
        MPI_Isend(&rank, 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[REQUESTS + i]);
    MPI_Waitall(2 * REQUESTS, requests, MPI_STATUSES_IGNORE);
    MPI_Pcontrol(3, "assembly");
    MPI_Pcontrol(-3);
    for (int i = 0; i < 3; i++)
        run_thread(one_communicator);
    for (int i = 0; i < COMMUNICATORS; i++)
        MPI_Comm_free(&communicators[i]);
    return NULL;
}

static void cut_short(void) {
    char pattern[4096];
    const char *directory = getenv("MPIPROBE_OUTPUT");
    glob_t found;
    if (directory == NULL)
        return;
    snprintf(pattern, sizeof pattern, "%s/*.mpiprobe", directory);
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (truncate(found.gl_pathv[i], 0) != 0 && errno != ENOENT)
            perror("stays: truncate");
    globfree(&found);
}

static sigjmp_buf before_fault;
static void *volatile fault;

static void note_fault(int signal, siginfo_t *information, void *context) {
    (void)signal, (void)context;
    fault = information->si_addr;
    siglongjmp(before_fault, 1);
}

static void handle_bus_errors(void) {
    struct sigaction action = {.sa_sigaction = note_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
}

static void bus_error(void) {
    enum { LENGTH = 8192 };
    FILE *file = tmpfile();
    if (file == NULL || ftruncate(fileno(file), LENGTH) != 0)
        exit(1);
    char *mapped = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    if (mapped == MAP_FAILED || ftruncate(fileno(file), 0) != 0)
        exit(1);
    if (sigsetjmp(before_fault, 1) == 0)
        mapped[4096] = 1;
    if (fault != mapped + 4096)
        exit(1);
}

int main(int argc, char **argv) {
    char high[STACK];
    int provided;
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "bus-error") == 0)
        handle_bus_errors();
    MPI_Init_thread(&argc, &argv, strcmp(mode, "confined") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gate(1);
    if (strcmp(mode, "left") == 0) {
        left();
    } else if (strcmp(mode, "lower-stack") == 0) {
        on_stack(malloc(STACK));
    } else if (strcmp(mode, "higher-stack") == 0) {
        on_stack(high);
    } else if (strcmp(mode, "confined") == 0) {
        run_thread(confined);
    } else if (strcmp(mode, "bus-error") == 0) {
        bus_error();
        allreduces(200);
    } else if (strcmp(mode, "cut-short") == 0) {
        for (int i = 0; i < 100; i++) {
            if (i == 50)
                cut_short();
            allreduce(MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
    puts("stays: as it should be");
    return 0;
}
