/* Gates: points where a test holds the ranks of a job without sleeping. A gate is a file <directory>/gate-<name> which
 * the harness holds locked; a process announces itself by creating gate-<name>.<rank>.<pid> and then waits in the kernel
 * for a shared lock. Opening the gate is giving up the lock: all waiting processes go on, later ones pass at once, and
 * nobody stays behind if the harness dies.
 *
 * Part of the truth library, and a library of its own for jobs that run without it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

int truth_rank(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]) != NULL)
            return atoi(getenv(names[i]));
    return -1;
}

/* MPIPROBE_TRUTH_GATES is a list such as "start,1,MPI_Init" of the gates in use; all others stand open. */
int truth_gate_in_use(const char *gate) {
    const char *list = getenv("MPIPROBE_TRUTH_GATES");
    size_t length = strlen(gate);
    while (list != NULL && *list != '\0') {
        size_t item = strcspn(list, ",");
        if (item == length && strncmp(list, gate, length) == 0)
            return 1;
        list += item + (list[item] == ',');
    }
    return 0;
}

void truth_gate_pass(const char *gate) {
    const char *directory = getenv("MPIPROBE_TRUTH_DIR");
    if (directory == NULL || !truth_gate_in_use(gate))
        return;
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/gate-%s", directory, gate);
    int lock = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(path + length, sizeof path - (size_t)length, ".%d.%d", truth_rank(), (int)getpid());
    int announced = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (lock < 0 || announced < 0) {
        fprintf(stderr, "gate: cannot use gate %s in %s: %s\n", gate, directory, strerror(errno));
        _exit(99);
    }
    close(announced);
    while (flock(lock, LOCK_SH) != 0 && errno == EINTR)
        ;
    close(lock);
}

void truth_gate(int number) {
    char gate[16];
    snprintf(gate, sizeof gate, "%d", number);
    truth_gate_pass(gate);
}

void truth_gate_(const int *number) {
    truth_gate(*number);
}

/* After the constructor of truth.c, before main(). */
__attribute__((constructor(102))) static void start(void) {
    truth_gate_pass("start");
}
