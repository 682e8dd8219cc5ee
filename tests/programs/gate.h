/* gate(n): where a test may hold the program (see truth/gate.c). Without the test's preloaded library it does nothing. */
#ifndef MPIPROBE_GATE_H
#define MPIPROBE_GATE_H

#ifdef __cplusplus
extern "C"
#endif
void truth_gate(int number) __attribute__((weak));

static inline void gate(int number) {
    if (truth_gate)
        truth_gate(number);
}

#endif
