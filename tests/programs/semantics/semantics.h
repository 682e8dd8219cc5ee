/* Shared by the files of the program semantics. */
#ifndef MPIPROBE_MEANING_H
#define MPIPROBE_MEANING_H

#include "../gate.h"

#include <mpi.h>
#include <string.h>

/* In MPI_COMM_WORLD; `partner` is rank xor 1. */
extern int rank, right, left, partner;

/* Ends the job with status 1 unless the condition holds. */
#define EXPECT(condition) expect(condition, #condition, __FILE__, __LINE__)
void expect(int holds, const char *condition, const char *file, int line);

/* count ints that only `sender` sends under this seed. */
void fill(int *words, int count, int sender, int seed);
void check(const int *words, int count, int sender, int seed);

/* Sends to the right and receives from the left without relying on buffers: even ranks send first. */
#define IN_TURNS(send, receive)                                                                                        \
    do {                                                                                                               \
        if (rank % 2 == 0) {                                                                                           \
            send;                                                                                                      \
            receive;                                                                                                   \
        } else {                                                                                                       \
            receive;                                                                                                   \
            send;                                                                                                      \
        }                                                                                                              \
    } while (0)

/* What a section needs is made before gate 2, used after it, and freed after gate 3; any of them may be NULL. */
struct section {
    const char *name;
    void (*make)(void), (*use)(void), (*release)(void);
};

extern const struct section point_to_point, collectives, datatypes, requests, communicators, nonblocking_collectives,
    neighbourhoods, one_sided, input_output, large, repeated, errors, inner_calls, many;

#endif
