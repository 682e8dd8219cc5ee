/* What happens before and after the library's function, by rule. */
#define _GNU_SOURCE
#include "call.h"

#include "../truth.h"
#include "ask.h"
#include "log.h"
#include "operation.h"
#include "scope.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *truth_real(uint32_t index) {
    void *next = atomic_load_explicit(&truth_typed_next[index], memory_order_acquire);
    if (next == NULL) {
        next = dlsym(RTLD_NEXT, truth_typed_names[index]);
        if (next == NULL) {
            fprintf(stderr, "truth: no library defines %s\n", truth_typed_names[index]);
            _exit(99);
        }
        atomic_store_explicit(&truth_typed_next[index], next, memory_order_release);
    }
    return next;
}

/* What a receive brought is then not known to us either: only asked for if an observer is to see the very arguments. */
static int keeps_ignored(const struct call *call) {
    static _Atomic int asked_for = -1;
    if (asked_for < 0)
        asked_for = getenv("MPIPROBE_TRUTH_KEEPS_IGNORED") != NULL;
    int receives = call->rule == RULE_RECEIVE || call->rule == RULE_SENDRECV || call->rule == RULE_MATCHED_RECEIVE ||
                   call->rule == RULE_READ;
    return asked_for && receives;
}

MPI_Status *truth_status(struct call *call, MPI_Status *given) {
    call->ignored = given == MPI_STATUS_IGNORE;
    if (call->ignored && keeps_ignored(call)) {
        call->status = NULL;
        return given;
    }
    return call->status = call->ignored ? &call->own_status : given;
}

MPI_Status *truth_statuses(struct call *call, MPI_Status *given, int count) {
    call->ignored = given == MPI_STATUSES_IGNORE;
    if (call->ignored)
        call->own_statuses = calloc((size_t)count + 1, sizeof *call->own_statuses);
    return call->status = call->ignored ? call->own_statuses : given;
}

static void look_up_requests(struct call *call) {
    int count = call->request_count;
    call->completing = count <= 64 ? call->few : calloc((size_t)count, sizeof *call->completing);
    for (int i = 0; i < count; i++)
        call->completing[i] = truth_request_find(call->requests[i]);
}

/* Handles and types are looked at before the call, which may free them. */
void truth_before(struct call *call) {
    if (call->has_comm)
        call->scope = truth_scope_of_comm(call->comm);
    else if (call->has_win)
        call->scope = truth_scope_of_win(call->win, NULL);
    else if (call->has_file)
        call->scope = truth_scope_of_file(call->file, NULL, NULL);
    if (call->rule == RULE_MATCHED_RECEIVE)
        call->handle = (uint64_t)(uintptr_t)*call->message;
    if (call->rule == RULE_CLOSE_FILE)
        call->handle = (uint64_t)(uintptr_t)*call->file_pointer;
    if (call->rule == RULE_CLOSE_SESSION)
        truth_session_closes();
    if (call->rule >= RULE_START && call->rule <= RULE_FREE_REQUEST)
        look_up_requests(call);
    else if (call->rule < RULE_START && call->rule != RULE_SPLIT_END)
        call->operation = truth_describe(call);
    truth_log_given(call);
    truth_clock_start();
}

static void begun(struct call *call) {
    struct operation *operation = call->operation;
    truth_operation_begins(operation);
    truth_log_done(call, operation);
    if (call->kind != BLOCKING) {
        truth_log_request(truth_request_made(operation, *call->requests));
    } else if (call->rule == RULE_SPLIT_READ || call->rule == RULE_SPLIT_WRITE) {
        operation->id = truth_log_number();
        truth_log_request(operation->id);
        *(call->rule == RULE_SPLIT_READ ? &call->scope->split : &call->scope->split_write) = operation;
        return;
    } else if (operation->by_status) {
        truth_operation_received(operation, call->status, call->ignored);
    }
    if (call->rule == RULE_MATCHED_PROBE && (call->flag == NULL || *call->flag)) {
        if (*call->message != MPI_MESSAGE_NO_PROC) {
            operation->from = truth_scope_peer(call->scope, call->status->MPI_SOURCE);
            operation->wildcard = operation->wildcard && call->ignored;
            operation->source = call->status->MPI_SOURCE;
            truth_log_request(truth_message_matched(*call->message, operation));
        }
    }
    free(operation);
}

static int has_found_nothing(const struct call *call) {
    return (call->flag != NULL && !*call->flag) || (call->index != NULL && *call->index == MPI_UNDEFINED) ||
           (call->outcount != NULL && (*call->outcount == MPI_UNDEFINED || *call->outcount == 0));
}

static void completed(struct call *call, int result) {
    int by_status = result == MPI_ERR_IN_STATUS; /* which of them have failed */
    if (result != MPI_SUCCESS && !by_status) {
        /* What has failed is complete all the same, and has brought nothing: its handle means nothing any more. */
        for (int i = 0; i < call->request_count; i++)
            if (call->rule == RULE_COMPLETE_ONE || call->requests[i] == MPI_REQUEST_NULL)
                truth_request_completed(call->completing[i], NULL, 0);
        return;
    }
    if (has_found_nothing(call) && !by_status)
        return;
    int count = call->index != NULL ? 1 : call->outcount != NULL ? *call->outcount : call->request_count;
    for (int i = 0; i < count; i++) {
        int at = call->index != NULL ? *call->index : call->indices != NULL ? call->indices[i] : i;
        const MPI_Status *status = &call->status[i];
        if (by_status && status->MPI_ERROR == MPI_ERR_PENDING)
            continue;
        int failed = by_status && status->MPI_ERROR != MPI_SUCCESS;
        truth_request_completed(call->completing[at], failed ? NULL : status, call->ignored);
    }
}

static void after_request_call(struct call *call, int result) {
    if (call->rule != RULE_START && call->rule != RULE_FREE_REQUEST) {
        completed(call, result);
    } else if (result == MPI_SUCCESS) {
        for (int i = 0; i < call->request_count; i++) {
            if (call->completing[i] == NULL)
                continue;
            if (call->rule == RULE_START)
                truth_request_started(call->completing[i], call->function + 1);
            else
                truth_request_freed(call->completing[i]);
        }
    }
    if (call->completing != call->few)
        free(call->completing);
    free(call->own_statuses);
}

/* A call that fails moves nothing. */
void truth_after(struct call *call, int result) {
    truth_clock_stop();
    if (truth_open_event() != NULL)
        truth_open_event()->result = result;
    if (result != MPI_SUCCESS)
        atomic_fetch_add_explicit(&truth_counts[call->function].failed, 1, memory_order_relaxed);
    if (result == MPI_SUCCESS && has_found_nothing(call))
        truth_found_nothing();
    if (call->rule >= RULE_START && call->rule <= RULE_FREE_REQUEST) {
        after_request_call(call, result);
        return;
    }
    if (result != MPI_SUCCESS) {
        free(call->operation);
        return;
    }
    switch (call->rule) {
    case RULE_MAKE_WINDOW:
        truth_scope_of_win(*call->new_win, call->scope);
        break;
    case RULE_OPEN_FILE:
        truth_scope_of_file(*call->file_pointer, call->scope, call->name);
        break;
    case RULE_CLOSE_FILE:
        truth_scope_close_file(call->handle);
        break;
    case RULE_NAME:
        truth_scope_rename(call->scope, call->name);
        break;
    case RULE_OPEN_SESSION:
        truth_session_opened(call->session);
        break;
    case RULE_CLOSE_SESSION:
    case RULE_TARGET:
        break;
    case RULE_SPLIT_END:
        if (call->scope->split != NULL) {
            truth_operation_received(call->scope->split, call->status, call->ignored);
            truth_log_change(call->scope->split, TRUTH_COMPLETED, call->status, call->ignored);
        } else if (call->scope->split_write != NULL) {
            truth_log_change(call->scope->split_write, TRUTH_COMPLETED, NULL, 0);
        }
        free(call->scope->split);
        free(call->scope->split_write);
        call->scope->split = call->scope->split_write = NULL;
        break;
    default:
        begun(call);
        break;
    }
}
