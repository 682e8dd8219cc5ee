/* Ranks in MPI_COMM_WORLD; without it, in the world of the first session. See scope.h. */
#include "../truth.h"
#include "ask.h"
#include "scope.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static MPI_Group world = MPI_GROUP_NULL;
static int sessions, world_is_of_session;

void *truth_allocate(size_t size) {
    void *memory = calloc(1, size + 1);
    if (memory == NULL) {
        fprintf(stderr, "truth: no memory\n");
        _exit(99);
    }
    return memory;
}

int *truth_world_ranks(MPI_Group group, int *size) {
    pthread_mutex_lock(&mutex);
    if (world == MPI_GROUP_NULL)
        ASK(Comm_group, MPI_COMM_WORLD, &world);
    pthread_mutex_unlock(&mutex);
    ASK(Group_size, group, size);
    int *ranks = truth_allocate((size_t)*size * sizeof *ranks), *in_world = truth_allocate((size_t)*size * sizeof *in_world);
    for (int i = 0; i < *size; i++)
        ranks[i] = i;
    ASK(Group_translate_ranks, group, *size, ranks, world, in_world);
    for (int i = 0; i < *size; i++)
        if (in_world[i] < 0)
            in_world[i] = TRUTH_PEER_FOREIGN;
    free(ranks);
    ASK(Group_free, &group);
    return in_world;
}

void truth_session_opened(const void *session) {
#if MPI_VERSION >= 4
    int with_world;
    MPI_Group group;
    ASK(Initialized, &with_world);
    pthread_mutex_lock(&mutex);
    if (sessions++ == 0 && !with_world && world == MPI_GROUP_NULL) {
        ASK(Group_from_session_pset, *(const MPI_Session *)session, "mpi://WORLD", &group);
        world = group;
        world_is_of_session = 1;
    }
    pthread_mutex_unlock(&mutex);
#else
    (void)session;
#endif
}

/* What belongs to MPI must be given back before MPI ends. With MPI_COMM_WORLD, it ends later. */
void truth_session_closes(void) {
    pthread_mutex_lock(&mutex);
    if (--sessions == 0 && world_is_of_session) {
        ASK(Group_free, &world);
        world = MPI_GROUP_NULL;
        world_is_of_session = 0;
        truth_scope_give_back();
    }
    pthread_mutex_unlock(&mutex);
}
