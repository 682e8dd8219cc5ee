/* One call of a function that moves data, by what its arguments are to it. The wrappers that fill it in are generated from
 * the function table (tests/src/truth/typed.rs); what follows from it is written by hand here, and nowhere shared with the
 * profiler. */
#ifndef MPIPROBE_TRUTH_CALL_H
#define MPIPROBE_TRUTH_CALL_H

#include <mpi.h>
#include <stdint.h>

/* Which rule says how much data a call moves, and where. */
enum rule {
    RULE_SEND,
    RULE_RECEIVE,
    RULE_SENDRECV,
    RULE_PROBE,
    RULE_MATCHED_PROBE,
    RULE_MATCHED_RECEIVE,
    RULE_BARRIER,
    RULE_BCAST,
    RULE_GATHER,
    RULE_SCATTER,
    RULE_ALLGATHER,
    RULE_ALLTOALL,
    RULE_REDUCE,
    RULE_ALLREDUCE,
    RULE_EXSCAN,
    RULE_REDUCE_SCATTER,
    RULE_REDUCE_SCATTER_BLOCK,
    RULE_NEIGHBOR_ALLGATHER,
    RULE_NEIGHBOR_ALLTOALL,
    RULE_ACCESS, /* one-sided */
    RULE_WRITE,
    RULE_READ,
    RULE_SPLIT_WRITE, /* the beginning of a split collective */
    RULE_SPLIT_READ,
    RULE_SPLIT_END,
    RULE_START,
    RULE_COMPLETE_ONE,
    RULE_COMPLETE_ALL,
    RULE_COMPLETE_ANY,
    RULE_COMPLETE_SOME,
    RULE_FREE_REQUEST,
    RULE_MAKE_WINDOW,
    RULE_NAME,
    RULE_OPEN_FILE,
    RULE_CLOSE_FILE,
    RULE_OPEN_SESSION,
    RULE_CLOSE_SESSION,
    RULE_TARGET, /* one-sided, and moves nothing: locks, flushes */
};

enum operation_kind { BLOCKING, NONBLOCKING, PERSISTENT };

/* A buffer argument with its counts and datatypes. */
struct side {
    const void *buffer;
    MPI_Count count;       /* of every block */
    const int *counts;     /* by block, if not NULL */
    const MPI_Count *large_counts;
    MPI_Datatype type;     /* of every block; MPI_DATATYPE_NULL without one */
    const MPI_Datatype *types;
};

struct operation;
struct scope;

/* What the function has no argument for is 0, or MPI_PROC_NULL where a rank is meant. */
struct call {
    uint32_t function; /* index */
    enum rule rule;
    enum operation_kind kind;
    struct side send, receive; /* data that leaves and data that arrives; a buffer that is both is on both sides */
    int dest, source, root, target, lock;
    int send_tag, receive_tag;
    int has_send, has_receive, has_comm, has_win, has_file;
    MPI_Comm comm;
    MPI_Win win;
    MPI_File file;
    MPI_Op op;
    int partitions; /* 1 if the operation is not partitioned */
    const char *name;
    MPI_Message *message;
    MPI_Request *requests; /* the one, or the array */
    int request_count;
    const int *flag;      /* whether anything is complete; NULL: surely */
    const int *index;     /* of the request that is */
    const int *outcount, *indices;
    MPI_Win *new_win;
    const void *session; /* its handle's place */
    MPI_File *file_pointer;
    MPI_Status *status;   /* the program's, or ours; the array, if there are several */

    /* From here on not set by the wrappers. */
    int ignored; /* the program does not look at the status */
    MPI_Status own_status, *own_statuses;
    uint64_t handle; /* before the call, of an argument that the call overwrites */
    struct scope *scope;
    struct operation *operation;
    struct operation **completing, *few[64]; /* by request, what it stands for before the call; NULL: nothing we know */
};

/* Whether the meaning of this call is to be recorded: it is the program's own. (truth.c) */
int truth_tells(uint32_t function);
void truth_clock_start(void);
void truth_clock_stop(void);

/* The library's function, behind all preloaded ones: `index` into truth_typed_names. (call.c) */
void *truth_real(uint32_t index);
extern const char *const truth_typed_names[];
extern _Atomic(void *) truth_typed_next[];

/* A status that is really set, whatever the program passes (unless MPIPROBE_TRUTH_KEEPS_IGNORED is set, for blocking receives and
 * reads). Before truth_before(). */
MPI_Status *truth_status(struct call *call, MPI_Status *given);
MPI_Status *truth_statuses(struct call *call, MPI_Status *given, int count);

void truth_before(struct call *call);
void truth_after(struct call *call, int result);

/* Before the call; to be freed. (describe.c) */
struct operation *truth_describe(struct call *call);
/* Bytes by the rules for collectives, as they leave and arrive in the process that calls. (collective.c) */
void truth_collective(const struct call *call, uint64_t *sent, uint64_t *received);
/* Of `blocks` blocks. (sizes.c) */
uint64_t truth_side_bytes(const struct side *side, int blocks);
/* Of one of the blocks. */
uint64_t truth_block_bytes(const struct side *side, int block);
/* What has arrived. */
uint64_t truth_status_bytes(const MPI_Status *status);

#endif
