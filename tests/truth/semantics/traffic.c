/* See traffic.h. */
#include "traffic.h"

#include <pthread.h>
#include <string.h>

int truth_meaning;

static struct truth_scope *scopes;
static int32_t *members;
static struct truth_traffic *traffic;
static struct truth_traffic no_room; /* takes what is then counted as untold */

static uint32_t buckets[2 * TRUTH_TRAFFIC]; /* index + 1 into traffic */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void truth_lock(void) {
    pthread_mutex_lock(&mutex);
}

void truth_unlock(void) {
    pthread_mutex_unlock(&mutex);
}

uint64_t truth_traffic_bytes(void) {
    return TRUTH_SCOPES * sizeof *scopes + TRUTH_MEMBERS * sizeof *members + TRUTH_TRAFFIC * sizeof *traffic;
}

void truth_traffic_place(struct truth_header *header, uint64_t offset) {
    char *base = (char *)header;
    header->scopes_offset = offset;
    header->members_offset = header->scopes_offset + TRUTH_SCOPES * sizeof *scopes;
    header->traffic_offset = header->members_offset + TRUTH_MEMBERS * sizeof *members;
    scopes = (struct truth_scope *)(base + header->scopes_offset);
    members = (int32_t *)(base + header->members_offset);
    traffic = (struct truth_traffic *)(base + header->traffic_offset);
    truth_meaning = 1;
}

struct truth_traffic *truth_traffic_of(uint32_t function, uint32_t started_by, uint32_t scope, int peer) {
    uint32_t hash = ((function * 31 + started_by) * 8191 + scope) * 65599u + (uint32_t)peer * 2654435761u;
    truth_lock();
    uint32_t *bucket = &buckets[hash % (2 * TRUTH_TRAFFIC)];
    for (; *bucket != 0; bucket = bucket + 1 == buckets + 2 * TRUTH_TRAFFIC ? buckets : bucket + 1) {
        struct truth_traffic *found = &traffic[*bucket - 1];
        if (found->function == function && found->started_by == started_by && found->scope == scope &&
            found->peer == peer) {
            truth_unlock();
            return found;
        }
    }
    uint32_t index = atomic_load(&truth_header->traffic);
    struct truth_traffic *made = index < TRUTH_TRAFFIC ? &traffic[index] : &no_room;
    if (made == &no_room) {
        atomic_fetch_add(&truth_header->untold, 1);
    } else {
        made->function = function;
        made->started_by = started_by;
        made->scope = scope;
        made->peer = peer;
        *bucket = index + 1;
        atomic_store(&truth_header->traffic, index + 1);
    }
    truth_unlock();
    return made;
}

struct truth_scope *truth_scope_entry(uint32_t scope) {
    return scope == 0 ? NULL : &scopes[scope - 1];
}

/* Lists are shared by all communicators with the same members. -1: there is no room. Called with the lock held. */
static int64_t place_members(const int *list, uint32_t size, uint32_t known) {
    for (uint32_t i = 0; i < known; i++) {
        if (scopes[i].size == size && memcmp(members + scopes[i].members, list, size * sizeof *list) == 0)
            return scopes[i].members;
    }
    uint32_t start = atomic_load(&truth_header->members);
    if (size > TRUTH_MEMBERS - start)
        return -1;
    memcpy(members + start, list, size * sizeof *list);
    atomic_store(&truth_header->members, start + size);
    return start;
}

static int same(const struct truth_scope *a, const struct truth_scope *b) {
    return a->kind == b->kind && a->rank == b->rank && a->size == b->size && a->members == b->members &&
           a->remote_size == b->remote_size && a->remote_members == b->remote_members && strcmp(a->name, b->name) == 0;
}

uint32_t truth_scope_write(const struct truth_scope *described, const int *list, const int *remote_list) {
    struct truth_scope made = *described;
    truth_lock();
    uint32_t index = atomic_load(&truth_header->scopes), result = 0;
    int64_t local = place_members(list, made.size, index), remote = place_members(remote_list, made.remote_size, index);
    if (local >= 0 && remote >= 0) {
        made.members = (uint32_t)local;
        made.remote_members = (uint32_t)remote;
        if (index < TRUTH_SCOPES) {
            scopes[index] = made;
            atomic_store(&truth_header->scopes, index + 1);
            result = index + 1;
        }
        /* A program that makes thousands of communicators has many alike. */
        for (uint32_t i = 0; result == 0 && i < index; i++)
            if (same(&scopes[i], &made))
                result = i + 1;
    }
    if (result == 0)
        atomic_fetch_add(&truth_header->untold, 1);
    truth_unlock();
    return result;
}
