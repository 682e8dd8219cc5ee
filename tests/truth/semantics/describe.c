/* The operation that a call begins: what moves, from whom, to whom. */
#include "../truth.h"
#include "call.h"
#include "operation.h"
#include "scope.h"

#include <stdlib.h>
#include <unistd.h>

static void describe_message(struct call *call, struct operation *operation) {
    operation->sends = call->rule == RULE_SEND || call->rule == RULE_SENDRECV;
    operation->receives = operation->by_status = call->rule != RULE_SEND;
    if (operation->sends) {
        operation->to = truth_scope_peer(call->scope, call->dest);
        if (operation->to != TRUTH_PEER_NULL)
            operation->sent = (uint64_t)call->partitions * truth_side_bytes(&call->send, 1);
    }
    if (operation->receives) {
        operation->from = truth_scope_peer(call->scope, call->source);
        operation->wildcard = call->source == MPI_ANY_SOURCE;
        if (operation->from != TRUTH_PEER_NULL)
            operation->capacity = (uint64_t)call->partitions * truth_side_bytes(&call->receive, 1);
    }
}

static void describe_access(struct call *call, struct operation *operation) {
    operation->to = operation->from = truth_scope_peer(call->scope, call->target);
    if (operation->to == TRUTH_PEER_NULL)
        return;
    /* MPI_NO_OP only fetches: its origin arguments mean nothing. */
    operation->sends = call->has_send && call->op != MPI_NO_OP;
    operation->receives = call->has_receive;
    if (operation->sends)
        operation->sent = truth_side_bytes(&call->send, 1);
    if (operation->receives)
        operation->received = truth_side_bytes(&call->receive, 1);
}

static void describe_file_access(struct call *call, struct operation *operation) {
    operation->sends = call->rule == RULE_WRITE || call->rule == RULE_SPLIT_WRITE;
    operation->receives = operation->by_status = !operation->sends;
    if (operation->sends)
        operation->sent = truth_side_bytes(&call->send, 1);
    else
        operation->capacity = truth_side_bytes(&call->receive, 1);
}

struct operation *truth_describe(struct call *call) {
    struct operation *operation = calloc(1, sizeof *operation);
    if (operation == NULL)
        _exit(99);
    operation->function = call->function;
    operation->scope = call->scope;
    operation->persistent = call->kind == PERSISTENT;
    operation->active = call->kind == NONBLOCKING;
    operation->to = operation->from = TRUTH_PEER_NONE;
    operation->source = operation->receive_tag = TRUTH_NO_RANK;
    if (call->rule == RULE_RECEIVE || call->rule == RULE_SENDRECV) {
        operation->source = call->source == MPI_PROC_NULL    ? TRUTH_RANK_NULL
                            : call->source == MPI_ANY_SOURCE ? TRUTH_RANK_ANY
                                                             : call->source;
        operation->receive_tag = call->receive_tag == MPI_ANY_TAG ? TRUTH_RANK_ANY : call->receive_tag;
    }
    switch (call->rule) {
    case RULE_SEND:
    case RULE_RECEIVE:
    case RULE_SENDRECV:
        describe_message(call, operation);
        break;
    case RULE_MATCHED_RECEIVE:
        operation->receives = operation->by_status = 1;
        truth_message_received(call->handle, operation);
        if (operation->from != TRUTH_PEER_NULL)
            operation->capacity = truth_side_bytes(&call->receive, 1);
        break;
    case RULE_PROBE:
    case RULE_MATCHED_PROBE:
        operation->to = truth_scope_peer(call->scope, call->source);
        operation->wildcard = call->source == MPI_ANY_SOURCE;
        break;
    case RULE_ACCESS:
        describe_access(call, operation);
        break;
    case RULE_WRITE:
    case RULE_READ:
    case RULE_SPLIT_WRITE:
    case RULE_SPLIT_READ:
        describe_file_access(call, operation);
        break;
    default:
        truth_collective(call, &operation->sent, &operation->received);
        break;
    }
    return operation;
}
