/* How the one that is late in a test comes late: the first time by so much that nobody else is later on a machine that has much to do, and 2 ms
 * later on, so that tests are short. */
#ifndef MPIPROBE_LATE_H
#define MPIPROBE_LATE_H

#include <time.h>

static inline void come_late(int is_first) {
    struct timespec late = {0, is_first ? 200000000 : 2000000};
    nanosleep(&late, 0);
}

#endif
