/* The log of events: every outermost call of every thread, in order, with what it was given and what it has done. */
#ifndef MPIPROBE_TRUTH_LOG_H
#define MPIPROBE_TRUTH_LOG_H

#include "../truth.h"

#include <mpi.h>
#include <stdint.h>

struct call;
struct operation;

/* Whether events are logged. */
extern int truth_logging;

uint64_t truth_log_bytes(void);
/* Before the file is complete. */
void truth_log_place(struct truth_header *header, uint64_t offset);

/* What the thread's open call has been found to be; NULL: nothing is logged. (truth.c) */
struct truth_event *truth_open_event(void);

/* The open call has only asked, in vain, whether something has happened. */
void truth_found_nothing(void);
/* The open call has returned. */
void truth_log_event(const struct truth_event *event);

/* What a call was given; what it has done, if it was successful. */
void truth_log_given(const struct call *call);
void truth_log_done(const struct call *call, const struct operation *operation);
void truth_log_request(uint64_t request);

/* A number for a request that nobody has had. */
uint64_t truth_log_number(void);
/* What the open call does to a request. */
void truth_log_change(const struct operation *operation, enum truth_change_kind kind, const MPI_Status *status,
                      int ignored);

#endif
