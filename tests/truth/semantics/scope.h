/* Communicators, windows and files as MPI describes them. A description is bound to the object by an attribute, so that a
 * handle which is freed and used again is another one. */
#ifndef MPIPROBE_TRUTH_SCOPE_H
#define MPIPROBE_TRUTH_SCOPE_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

struct operation;

struct scope {
    uint32_t entry; /* in the file, index + 1; 0: no room there */
    int inter;
    int rank, size;
    int *world; /* by rank, that in MPI_COMM_WORLD; or TRUTH_PEER_FOREIGN */
    int remote_size;
    int *remote_world;
    int indegree, outdegree; /* of its topology */
    uint64_t absent;         /* bits of those neighbours, from and to, that are MPI_PROC_NULL */
    struct operation *split; /* a file's split collective that has begun */
    struct operation *split_write;
};

struct scope *truth_scope_of_comm(MPI_Comm comm);
struct scope *truth_scope_of_win(MPI_Win win, const struct scope *parent);
/* `name` is NULL if the file was opened unseen. */
struct scope *truth_scope_of_file(MPI_File file, const struct scope *parent, const char *name);
void truth_scope_close_file(uint64_t handle);

/* The name has been set anew. */
void truth_scope_rename(struct scope *scope, const char *name);

/* The rank at the other end of a message in the scope, as struct truth_traffic has it. */
int truth_scope_peer(const struct scope *scope, int rank);

/* What MPI must get back before it ends. */
void truth_scope_give_back(void);

/* Zeroed memory, and never of no bytes. (world.c) */
void *truth_allocate(size_t size);
/* By rank in the group, the rank in the world or TRUTH_PEER_FOREIGN; to be freed. The group is freed here. */
int *truth_world_ranks(MPI_Group group, int *size);
/* Without MPI_COMM_WORLD, the world is the first session's. `session` points to its handle. */
void truth_session_opened(const void *session);
void truth_session_closes(void);

#endif
