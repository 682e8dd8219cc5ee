/* See operation.h. */
#include "operation.h"

#include "ask.h"
#include "call.h"
#include "traffic.h"

#include <stddef.h>

static struct truth_traffic *traffic(const struct operation *operation, int peer) {
    uint32_t scope = operation->scope != NULL ? operation->scope->entry : 0;
    return truth_traffic_of(operation->function, operation->started_by, scope, peer);
}

static void add(_Atomic uint64_t *counter, uint64_t amount) {
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

void truth_operation_begins(struct operation *operation) {
    struct truth_traffic *to = NULL, *from = NULL;
    int moves = !operation->persistent || operation->started_by != 0; /* that a request is made moves nothing */
    /* A collective is neither, and has one entry for both directions. */
    if (operation->sends || !operation->receives) {
        to = traffic(operation, operation->to);
        add(&to->calls, 1);
        add(&to->sends, moves && operation->sends && operation->to != TRUTH_PEER_NULL);
        add(&to->sent, moves ? operation->sent : 0);
        if (moves && !operation->receives)
            add(&to->received.received, operation->received);
    }
    if (operation->receives) {
        from = traffic(operation, operation->from);
        if (from != to)
            add(&from->calls, 1);
        if (moves && !operation->by_status && operation->from != TRUTH_PEER_NULL) {
            add(&from->received.receives, 1);
            add(&from->received.received, operation->received);
        }
    }
    operation->gauge = to != NULL ? to : from;
}

static void receive(struct truth_amount *amount, uint64_t bytes, uint64_t capacity) {
    add(&amount->receives, 1);
    add(&amount->received, bytes);
    add(&amount->capacity, capacity);
}

void truth_operation_received(const struct operation *operation, const MPI_Status *status, int ignored) {
    int cancelled = 0, peer = operation->from;
    if (peer == TRUTH_PEER_NULL)
        return;
    /* Only what has a request can be cancelled; for others Open MPI's files leave that part of the status as it was. */
    if (operation->active && status != NULL && peer != TRUTH_PEER_NONE)
        ASK(Test_cancelled, status, &cancelled);
    if (cancelled)
        return;
    if (peer == TRUTH_PEER_ANY && status != NULL)
        peer = truth_scope_peer(operation->scope, status->MPI_SOURCE);
    struct truth_traffic *actual = traffic(operation, peer);
    if (operation->from == TRUTH_PEER_ANY && peer != TRUTH_PEER_ANY) {
        add(&traffic(operation, TRUTH_PEER_ANY)->calls, (uint64_t)-1);
        /* An exchange with one partner is one call with it. */
        if (!operation->sends || operation->to != peer)
            add(&actual->calls, 1);
    }
    uint64_t bytes = status != NULL ? truth_status_bytes(status) : operation->capacity;
    receive(&actual->received, bytes, operation->capacity);
    if (ignored)
        receive(&actual->ignored, bytes, operation->capacity);
    if (ignored && operation->wildcard)
        receive(&actual->hidden, bytes, operation->capacity);
}
