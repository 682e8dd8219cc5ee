/* Requests by the value of their handles, and matched messages. A handle's value is used again as soon as its request is
 * complete, by another thread even before the call that completed it returns: so whoever completes requests looks them up
 * before the call, and whoever gets one replaces what it meant. */
#include "operation.h"

#include "../truth.h"
#include "ask.h"
#include "log.h"
#include "traffic.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUCKETS 4096

static struct operation *requests[BUCKETS], *messages;

static uint64_t value(MPI_Request request) {
    return (uint64_t)(uintptr_t)request;
}

static struct operation **bucket(uint64_t handle) {
    return &requests[(handle ^ handle >> 7 ^ handle >> 16) % BUCKETS];
}

static struct operation *copy(const struct operation *operation, uint64_t handle) {
    struct operation *made = malloc(sizeof *made);
    if (made == NULL)
        _exit(99);
    *made = *operation;
    made->handle = handle;
    return made;
}

static struct operation *find(uint64_t handle) {
    struct operation *operation = *bucket(handle);
    while (operation != NULL && operation->handle != handle)
        operation = operation->next;
    return operation;
}

/* All with the lock held. */
static void insert(struct operation *operation) {
    operation->next = *bucket(operation->handle);
    *bucket(operation->handle) = operation;
}

static void take_out(struct operation *operation) {
    struct operation **link = bucket(operation->handle);
    while (*link != NULL && *link != operation)
        link = &(*link)->next;
    if (*link != NULL)
        *link = operation->next;
}

/* The handle means something else now. What it meant is being completed by another thread, which still needs it. */
static void forget(uint64_t handle) {
    struct operation *before = find(handle);
    if (before != NULL)
        take_out(before);
}

#if !defined(OPEN_MPI) && (defined(MPICH_NAME) || defined(MPICH))
static int is_intel(void) {
    static _Atomic int known;
    if (known == 0) {
        char version[MPI_MAX_LIBRARY_VERSION_STRING];
        int length;
        ASK(Get_library_version, version, &length);
        known = strncmp(version, "Intel", 5) == 0 ? 1 : 2;
    }
    return known == 1;
}
#endif

/* Libraries hand out one request for all operations that are complete at once. */
static int is_shared(const struct operation *operation, MPI_Request request) {
    (void)operation;
    (void)request;
#if defined(OPEN_MPI)
    static _Atomic(void *) empty;
    if (atomic_load(&empty) == NULL)
        atomic_store(&empty, dlsym(RTLD_DEFAULT, "ompi_request_empty"));
    return (void *)request == atomic_load(&empty);
#elif defined(MPICH_NAME) || defined(MPICH)
    /* A predefined object of the type request; MPI_REQUEST_NULL is an invalid one. Intel MPI makes them itself: the first four. */
    return (unsigned)request >> 26 == 0x1b || ((unsigned)request - 0xac000000 < 4 && is_intel());
#else
    /* The standard ABI does not tell which: whatever is complete at once. Persistent requests are so before they are started. */
    int complete = 0;
    if (operation->active)
        ASK(Request_get_status, request, &complete, MPI_STATUS_IGNORE);
    return complete;
#endif
}

uint64_t truth_request_made(const struct operation *operation, MPI_Request request) {
    if (request == MPI_REQUEST_NULL)
        return 0;
    if (is_shared(operation, request)) {
        MPI_Status status;
        truth_lock();
        forget(value(request));
        truth_unlock();
        int complete = 0;
        if (operation->by_status)
            ASK(Request_get_status, request, &complete, &status);
        if (complete)
            truth_operation_received(operation, &status, 0);
        return 0;
    }
    if (operation->active)
        atomic_fetch_add(&operation->gauge->open, 1);
    struct operation *made = copy(operation, value(request));
    uint64_t id = made->id = truth_log_number();
    truth_lock();
    forget(made->handle);
    insert(made);
    truth_unlock();
    return id;
}

struct operation *truth_request_find(MPI_Request request) {
    if (request == MPI_REQUEST_NULL)
        return NULL;
    truth_lock();
    struct operation *operation = find(value(request));
    truth_unlock();
    return operation;
}

void truth_request_started(struct operation *operation, uint32_t started_by) {
    truth_log_change(operation, TRUTH_STARTED, NULL, 0);
    operation->started_by = started_by;
    truth_operation_begins(operation);
    operation->active = 1;
    atomic_fetch_add(&operation->gauge->open, 1);
}

/* A persistent request is inactive then, and goes on; any other is gone. */
static void ended(struct operation *operation, int gone) {
    if (operation->active)
        atomic_fetch_sub(&operation->gauge->open, 1);
    operation->active = 0;
    if (!gone)
        return;
    truth_lock();
    take_out(operation);
    truth_unlock();
    free(operation);
}

void truth_request_completed(struct operation *operation, const MPI_Status *status, int ignored) {
    if (operation == NULL || !operation->active)
        return;
    truth_log_change(operation, status != NULL ? TRUTH_COMPLETED : TRUTH_FAILED, status, ignored);
    if (operation->by_status && status != NULL)
        truth_operation_received(operation, status, ignored);
    ended(operation, !operation->persistent);
}

void truth_request_freed(struct operation *operation) {
    if (operation == NULL)
        return;
    truth_log_change(operation, TRUTH_RELEASED, NULL, 0);
    ended(operation, 1);
}

uint64_t truth_message_matched(MPI_Message message, const struct operation *by) {
    struct operation *made = copy(by, (uint64_t)(uintptr_t)message);
    uint64_t id = made->id = truth_log_number();
    truth_lock();
    made->next = messages;
    messages = made;
    truth_unlock();
    return id;
}

void truth_message_received(uint64_t handle, struct operation *operation) {
    truth_lock();
    struct operation **link = &messages, *matched;
    while (*link != NULL && (*link)->handle != handle)
        link = &(*link)->next;
    if ((matched = *link) != NULL)
        *link = matched->next;
    truth_unlock();
    /* MPI_MESSAGE_NO_PROC is of nobody, however often. */
    operation->from = matched != NULL ? matched->from : TRUTH_PEER_NULL;
    operation->scope = matched != NULL ? matched->scope : NULL;
    operation->wildcard = matched != NULL && matched->wildcard;
    operation->source = matched != NULL ? matched->source : TRUTH_RANK_NULL;
    operation->receive_tag = TRUTH_RANK_ANY;
    if (matched != NULL)
        truth_log_change(matched, TRUTH_COMPLETED, NULL, 0);
    free(matched);
}
