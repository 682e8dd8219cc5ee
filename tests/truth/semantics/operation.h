/* Operations from their beginning to their completion, and the requests that stand for them. */
#ifndef MPIPROBE_TRUTH_OPERATION_H
#define MPIPROBE_TRUTH_OPERATION_H

#include "../truth.h"
#include "scope.h"

#include <mpi.h>
#include <stdint.h>

struct truth_traffic;

struct operation {
    struct operation *next; /* among those whose requests fall into the same bucket */
    uint64_t handle;
    uint32_t function, started_by; /* as in struct truth_traffic */
    struct scope *scope;           /* NULL: none */
    int sends, receives;           /* whether it has a message in that direction */
    int to, from;                  /* as in struct truth_traffic */
    uint64_t sent, received, capacity;
    int by_status;                 /* what arrives, and from whom, is known at completion */
    int wildcard;                  /* the arguments do not say from whom */
    int persistent, active;
    struct truth_traffic *gauge;
    uint64_t id;                   /* of its request, in the log of events; 0: none */
    int source, receive_tag;       /* as in struct truth_event, as given; of a message that was matched, as found */
};

/* It has begun: counts what is known by then. */
void truth_operation_begins(struct operation *operation);
/* Counts what the status says; without one, what was posted, from whom the arguments say. */
void truth_operation_received(const struct operation *operation, const MPI_Status *status, int ignored);

/* From now on the request stands for a copy of the operation. */
/* Gives its number in the log of events; 0: none that tells it from others. */
uint64_t truth_request_made(const struct operation *operation, MPI_Request request);
/* NULL: nothing that is recorded. */
struct operation *truth_request_find(MPI_Request request);
void truth_request_started(struct operation *operation, uint32_t started_by);
/* It is complete. `status` is NULL if it failed. */
void truth_request_completed(struct operation *operation, const MPI_Status *status, int ignored);
void truth_request_freed(struct operation *operation);

/* A message that was matched by a probe. */
uint64_t truth_message_matched(MPI_Message message, const struct operation *by);
/* Takes scope, from and wildcard from the probe. */
void truth_message_received(uint64_t handle, struct operation *operation);

#endif
