/* See ask.h. */
#include "ask.h"

#include "../truth.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {
#define QUESTION(name) "MPI_" #name,
    QUESTIONS(QUESTION)
#undef QUESTION
};

void truth_asked(enum question question) {
    static _Atomic uint32_t functions[sizeof names / sizeof *names]; /* index + 1 */
    uint32_t function = atomic_load_explicit(&functions[question], memory_order_relaxed);
    for (uint32_t i = 0; function == 0 && i < truth_functions; i++)
        if (strcmp(truth_function_names[i], names[question]) == 0)
            atomic_store_explicit(&functions[question], function = i + 1, memory_order_relaxed);
    if (function != 0 && truth_header != NULL)
        atomic_fetch_add_explicit(&truth_counts[function - 1].asked, 1, memory_order_relaxed);
}

void truth_answered(const char *question, int result) {
    if (result == MPI_SUCCESS)
        return;
    fprintf(stderr, "truth: MPI_%s failed with %d\n", question, result);
    _exit(99);
}
