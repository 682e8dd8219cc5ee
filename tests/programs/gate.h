/* What a test can do with a running program: hold it at a gate, and ask it to stop. Without a test neither does anything. */
#ifndef MPIPROBE_GATE_H
#define MPIPROBE_GATE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C"
#endif
void truth_gate(int number) __attribute__((weak));

/* Waits here if the test holds this gate (see truth/gate.c, which is preloaded then). */
static inline void gate(int number) {
    if (truth_gate)
        truth_gate(number);
}

/* Has the test asked for an end? To be called by one rank, which then tells the others. */
static inline int stop_requested(void) {
    const char *directory = getenv("MPIPROBE_TRUTH_DIR");
    char path[4096];
    if (directory == NULL)
        return 0;
    snprintf(path, sizeof path, "%s/stop", directory);
    return access(path, F_OK) == 0;
}

#endif
