/* The tables of the file: who has sent how much to whom by which function. */
#ifndef MPIPROBE_TRUTH_TRAFFIC_H
#define MPIPROBE_TRUTH_TRAFFIC_H

#include "../truth.h"

/* Whether the meaning of calls is recorded. */
extern int truth_meaning;

uint64_t truth_traffic_bytes(void);
/* Before the file is complete, hence before any call. */
void truth_traffic_place(struct truth_header *header, uint64_t offset);

/* The entry of these, made if need be; never NULL. `function` and the others as in struct truth_traffic. */
struct truth_traffic *truth_traffic_of(uint32_t function, uint32_t started_by, uint32_t scope, int peer);

/* Puts the description of a communicator, window or file into the file. `members` and `remote_members` are sorted.
 * Gives index + 1, and 0 if there is no room. */
uint32_t truth_scope_write(const struct truth_scope *described, const int *members, const int *remote_members);
/* The entry with that index + 1; NULL for 0. */
struct truth_scope *truth_scope_entry(uint32_t scope);

/* For short times; never held while MPI is called. */
void truth_lock(void);
void truth_unlock(void);

#endif
