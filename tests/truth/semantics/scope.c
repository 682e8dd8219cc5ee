/* See scope.h. */
#include "scope.h"

#include "../truth.h"
#include "ask.h"
#include "traffic.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct open_file {
    struct open_file *next;
    uint64_t handle;
    struct scope *scope;
};

static pthread_mutex_t describing = PTHREAD_MUTEX_INITIALIZER;
static int comm_keyval = MPI_KEYVAL_INVALID, win_keyval = MPI_KEYVAL_INVALID;
static struct open_file *files;

/* Called inside MPI, which may hold locks of its own: takes none. */
static void ends(struct scope *scope) {
    if (truth_header != NULL && scope->entry != 0)
        atomic_store(&truth_scope_entry(scope->entry)->freed, 1);
}

static int comm_ends(MPI_Comm comm, int keyval, void *scope, void *extra) {
    (void)comm, (void)keyval, (void)extra;
    ends(scope);
    return MPI_SUCCESS;
}

static int win_ends(MPI_Win win, int keyval, void *scope, void *extra) {
    (void)win, (void)keyval, (void)extra;
    ends(scope);
    return MPI_SUCCESS;
}

static int by_value(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

static int *sorted(const int *ranks, int size) {
    int *copy = truth_allocate((size_t)size * sizeof *copy);
    memcpy(copy, ranks, (size_t)size * sizeof *copy);
    for (int i = 0; i < size; i++)
        if (copy[i] == TRUTH_PEER_FOREIGN)
            copy[i] = -1;
    qsort(copy, (size_t)size, sizeof *copy, by_value);
    return copy;
}

static void write_down(struct scope *scope, enum truth_kind kind, const char *name, const struct scope *parent) {
    struct truth_scope entry = {.kind = kind, .rank = scope->rank, .parent = parent != NULL ? parent->entry : 0};
    entry.size = (uint32_t)scope->size;
    entry.remote_size = (uint32_t)scope->remote_size;
    strncpy(entry.name, name, sizeof entry.name - 1);
    int *members = sorted(scope->world, scope->size), *remote = sorted(scope->remote_world, scope->remote_size);
    scope->entry = truth_scope_write(&entry, members, remote);
    free(members);
    free(remote);
}

static void degrees(struct scope *scope, MPI_Comm comm) {
    int topology, weighted;
    ASK(Topo_test, comm, &topology);
    if (topology == MPI_CART) {
        int dimensions, before, behind;
        ASK(Cartdim_get, comm, &dimensions);
        scope->outdegree = scope->indegree = 2 * dimensions;
        for (int i = 0; i < dimensions; i++) {
            ASK(Cart_shift, comm, i, 1, &before, &behind);
            scope->absent |= (uint64_t)(before == MPI_PROC_NULL) << 2 * i;
            scope->absent |= (uint64_t)(behind == MPI_PROC_NULL) << (2 * i + 1);
        }
    } else if (topology == MPI_GRAPH) {
        ASK(Graph_neighbors_count, comm, scope->rank, &scope->indegree);
        scope->outdegree = scope->indegree;
    } else if (topology == MPI_DIST_GRAPH) {
        ASK(Dist_graph_neighbors_count, comm, &scope->indegree, &scope->outdegree, &weighted);
    }
}

static struct scope *describe_comm(MPI_Comm comm) {
    struct scope *scope = truth_allocate(sizeof *scope);
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length;
    MPI_Group group;
    ASK(Comm_test_inter, comm, &scope->inter);
    ASK(Comm_rank, comm, &scope->rank);
    ASK(Comm_group, comm, &group);
    scope->world = truth_world_ranks(group, &scope->size);
    if (scope->inter) {
        ASK(Comm_remote_group, comm, &group);
        scope->remote_world = truth_world_ranks(group, &scope->remote_size);
    } else {
        degrees(scope, comm);
    }
    ASK(Comm_get_name, comm, name, &length);
    write_down(scope, TRUTH_COMMUNICATOR, name, NULL);
    return scope;
}

struct scope *truth_scope_of_comm(MPI_Comm comm) {
    struct scope *scope = NULL;
    int known = 0;
    pthread_mutex_lock(&describing);
    if (comm_keyval == MPI_KEYVAL_INVALID)
        ASK(Comm_create_keyval, MPI_COMM_NULL_COPY_FN, comm_ends, &comm_keyval, NULL);
    ASK(Comm_get_attr, comm, comm_keyval, &scope, &known);
    if (!known) {
        scope = describe_comm(comm);
        ASK(Comm_set_attr, comm, comm_keyval, scope);
    }
    pthread_mutex_unlock(&describing);
    return scope;
}

static struct scope *describe_win(MPI_Win win, const struct scope *parent) {
    struct scope *scope = truth_allocate(sizeof *scope);
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length;
    MPI_Group group;
    ASK(Win_get_group, win, &group);
    ASK(Group_rank, group, &scope->rank);
    scope->world = truth_world_ranks(group, &scope->size);
    ASK(Win_get_name, win, name, &length);
    write_down(scope, TRUTH_WINDOW, name, parent);
    return scope;
}

struct scope *truth_scope_of_win(MPI_Win win, const struct scope *parent) {
    struct scope *scope = NULL;
    int known = 0;
    pthread_mutex_lock(&describing);
    if (win_keyval == MPI_KEYVAL_INVALID)
        ASK(Win_create_keyval, MPI_WIN_NULL_COPY_FN, win_ends, &win_keyval, NULL);
    ASK(Win_get_attr, win, win_keyval, &scope, &known);
    if (!known) {
        scope = describe_win(win, parent);
        ASK(Win_set_attr, win, win_keyval, scope);
    }
    pthread_mutex_unlock(&describing);
    return scope;
}

struct scope *truth_scope_of_file(MPI_File file, const struct scope *parent, const char *name) {
    uint64_t handle = (uint64_t)(uintptr_t)file;
    pthread_mutex_lock(&describing);
    struct open_file *open = files;
    while (open != NULL && open->handle != handle)
        open = open->next;
    if (open == NULL) {
        MPI_Group group;
        open = truth_allocate(sizeof *open);
        open->handle = handle;
        open->scope = truth_allocate(sizeof *open->scope);
        ASK(File_get_group, file, &group);
        ASK(Group_rank, group, &open->scope->rank);
        open->scope->world = truth_world_ranks(group, &open->scope->size);
        write_down(open->scope, TRUTH_FILE, name != NULL ? name : "", parent);
        open->next = files;
        files = open;
    }
    pthread_mutex_unlock(&describing);
    return open->scope;
}

void truth_scope_close_file(uint64_t handle) {
    pthread_mutex_lock(&describing);
    struct open_file **link = &files, *closed;
    while (*link != NULL && (*link)->handle != handle)
        link = &(*link)->next;
    if ((closed = *link) != NULL) {
        ends(closed->scope);
        *link = closed->next;
        free(closed);
    }
    pthread_mutex_unlock(&describing);
}

void truth_scope_rename(struct scope *scope, const char *name) {
    if (scope->entry == 0)
        return;
    struct truth_scope *entry = truth_scope_entry(scope->entry);
    memset(entry->name, 0, sizeof entry->name);
    strncpy(entry->name, name, sizeof entry->name - 1);
}

int truth_scope_peer(const struct scope *scope, int rank) {
    if (rank == MPI_PROC_NULL)
        return TRUTH_PEER_NULL;
    if (rank == MPI_ANY_SOURCE)
        return TRUTH_PEER_ANY;
    int size = scope->inter ? scope->remote_size : scope->size;
    if (rank < 0 || rank >= size)
        return TRUTH_PEER_FOREIGN;
    return scope->inter ? scope->remote_world[rank] : scope->world[rank];
}

void truth_scope_give_back(void) {
    if (comm_keyval != MPI_KEYVAL_INVALID)
        PMPI_Comm_free_keyval(&comm_keyval);
    if (win_keyval != MPI_KEYVAL_INVALID)
        PMPI_Win_free_keyval(&win_keyval);
}
