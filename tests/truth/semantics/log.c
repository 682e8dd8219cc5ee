/* See log.h. */
#include "log.h"

#include "ask.h"
#include "call.h"
#include "operation.h"
#include "scope.h"

int truth_logging;

static struct truth_log *logged;
static struct truth_event *events;
static struct truth_change *changes;

uint64_t truth_log_bytes(void) {
    return sizeof *logged + TRUTH_EVENTS * sizeof *events + TRUTH_CHANGES * sizeof *changes;
}

void truth_log_place(struct truth_header *header, uint64_t offset) {
    header->log_offset = offset;
    logged = (struct truth_log *)((char *)header + offset);
    events = (struct truth_event *)(logged + 1);
    changes = (struct truth_change *)(events + TRUTH_EVENTS);
    truth_logging = 1;
}

void truth_log_event(const struct truth_event *event) {
    uint32_t index = atomic_fetch_add(&logged->events, 1);
    events[index % TRUTH_EVENTS] = *event;
}

static int rank(int given) {
    return given == MPI_PROC_NULL ? TRUTH_RANK_NULL : given == MPI_ANY_SOURCE ? TRUTH_RANK_ANY : given;
}

static int tag(int given) {
    return given == MPI_ANY_TAG ? TRUTH_RANK_ANY : given;
}

void truth_log_given(const struct call *call) {
    struct truth_event *event = truth_open_event();
    if (event == NULL)
        return;
    event->is_told = 1;
    event->scope = call->scope != NULL ? call->scope->entry : 0;
    switch (call->rule) {
    case RULE_SEND:
    case RULE_SENDRECV:
        event->destination = rank(call->dest);
        event->send_tag = call->send_tag;
        if (call->rule == RULE_SEND)
            break;
        /* fallthrough */
    case RULE_RECEIVE:
    case RULE_PROBE:
    case RULE_MATCHED_PROBE:
        event->source = event->given_source = rank(call->source);
        event->receive_tag = event->given_tag = tag(call->receive_tag);
        break;
    case RULE_MATCHED_RECEIVE:
        event->source = event->given_source = call->operation->source;
        event->receive_tag = event->given_tag = TRUTH_RANK_ANY;
        event->scope = call->operation->scope != NULL ? call->operation->scope->entry : 0;
        break;
    case RULE_ACCESS:
        event->destination = rank(call->target);
        break;
    case RULE_TARGET:
        event->destination = rank(call->target);
        event->lock = call->lock == MPI_LOCK_EXCLUSIVE ? 1 : call->lock == MPI_LOCK_SHARED ? 2 : 0;
        break;
    case RULE_BCAST:
    case RULE_GATHER:
    case RULE_SCATTER:
    case RULE_REDUCE:
        event->root = call->root == MPI_ROOT ? TRUTH_RANK_ROOT : rank(call->root);
        break;
    default:
        break;
    }
}

void truth_log_done(const struct call *call, const struct operation *operation) {
    struct truth_event *event = truth_open_event();
    if (event == NULL)
        return;
    event->sent = operation->sent;
    event->capacity = operation->capacity;
    event->received = operation->by_status ? operation->capacity : operation->received;
    int finds = (call->rule == RULE_PROBE || call->rule == RULE_MATCHED_PROBE) && (call->flag == NULL || *call->flag);
    int receives = operation->by_status && call->kind == BLOCKING && call->rule != RULE_SPLIT_READ;
    if (!(finds || receives) || call->status == NULL || event->given_source == TRUTH_RANK_NULL)
        return;
    if (receives)
        event->received = truth_status_bytes(call->status);
    event->is_ignored = (uint32_t)call->ignored;
    if (event->given_source == TRUTH_RANK_ANY)
        event->source = rank(call->status->MPI_SOURCE);
    if (event->given_tag == TRUTH_RANK_ANY)
        event->receive_tag = tag(call->status->MPI_TAG);
}

void truth_log_request(uint64_t request) {
    struct truth_event *event = truth_open_event();
    if (event != NULL)
        event->request = request;
}

uint64_t truth_log_number(void) {
    static _Atomic uint64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

void truth_log_change(const struct operation *operation, enum truth_change_kind kind, const MPI_Status *status,
                      int ignored) {
    const struct truth_event *event = truth_open_event();
    if (event == NULL || operation->id == 0)
        return;
    struct truth_change change = {
        .tid = event->tid,
        .number = event->number,
        .kind = kind,
        .function = operation->function,
        .scope = operation->scope != NULL ? operation->scope->entry : 0,
        .source = operation->source,
        .given_source = operation->source,
        .tag = operation->receive_tag,
        .is_ignored = (uint32_t)ignored,
        .request = operation->id,
        .received = operation->by_status ? operation->capacity : operation->received,
        .capacity = operation->capacity,
    };
    if (kind == TRUTH_COMPLETED && status != NULL && operation->by_status && operation->source != TRUTH_RANK_NULL) {
        int cancelled = 0;
        if (operation->source != TRUTH_NO_RANK)
            ASK(Test_cancelled, status, &cancelled);
        if (cancelled) {
            change.kind = TRUTH_CANCELLED;
        } else {
            change.received = truth_status_bytes(status);
            if (operation->source == TRUTH_RANK_ANY)
                change.source = rank(status->MPI_SOURCE);
            if (operation->receive_tag == TRUTH_RANK_ANY)
                change.tag = tag(status->MPI_TAG);
        }
    }
    uint32_t index = atomic_fetch_add(&logged->changes, 1);
    changes[index % TRUTH_CHANGES] = change;
}
