/* Layout of the file that the truth library maps, one per process image. Read by tests/src/truth/: change both.
 *
 *   offset 0                     struct truth_header
 *   header.functions_offset      struct truth_function [header.functions]
 *   header.threads_offset        struct truth_thread   [header.threads]
 *   header.ended_offset          struct truth_ended    [header.ended]        the first TRUTH_ENDED of them
 *   header.scopes_offset         struct truth_scope    [header.scopes]       only if the meaning of calls was asked for
 *   header.members_offset        int32_t               [header.members]
 *   header.traffic_offset        struct truth_traffic  [header.traffic]
 *   header.log_offset            struct truth_log, and struct truth_event [TRUTH_EVENTS] and struct truth_change [TRUTH_CHANGES] behind it,
 *                                only if a log of events was asked for
 *
 * All words are in the machine's byte order. The mapping is shared, so that everything counted so far is in the file
 * whatever happens to the process, SIGKILL included. */
#ifndef MPIPROBE_TRUTH_H
#define MPIPROBE_TRUTH_H

#include <stdatomic.h>
#include <stdint.h>

#define TRUTH_MAGIC "MPITRUTH"
#define TRUTH_VERSION 6
#define TRUTH_THREADS 512
/* Threads that have ended and are listed; header.ended counts them all. */
#define TRUTH_ENDED 1024
/* Room for the meaning of calls; what finds none is counted in header.untold. */
#define TRUTH_SCOPES 4096
#define TRUTH_MEMBERS (1 << 18)
#define TRUTH_TRAFFIC (1 << 15)

struct truth_header {
    char magic[8];            /* written last: a file without it is still being made */
    uint32_t version;
    uint32_t pid;
    uint32_t parent;          /* parent's pid at start */
    int32_t rank;             /* in MPI_COMM_WORLD, from the launcher's environment; -1 without one */
    uint64_t created_ns;      /* CLOCK_MONOTONIC */
    uint32_t functions;
    uint32_t threads;
    uint64_t functions_offset;
    uint64_t threads_offset;
    _Atomic uint64_t unlisted_threads; /* threads that found no free slot: counted, but not shown in the table */
    uint64_t scopes_offset;            /* 0: the meaning of calls is not recorded */
    uint64_t members_offset;
    uint64_t traffic_offset;
    _Atomic uint32_t scopes; /* in use, raised after the entry was written */
    _Atomic uint32_t members;
    _Atomic uint32_t traffic;
    _Atomic uint32_t ended;  /* threads that were in the table of threads and have ended */
    _Atomic uint64_t untold; /* what found no room in one of these tables */
    uint64_t ended_offset;
    uint64_t log_offset;
};

struct truth_function {
    char name[64];              /* the C name, zero padded, whatever the language of the call */
    _Atomic uint64_t entered;   /* outermost calls that began */
    _Atomic uint64_t completed; /* outermost calls that returned */
    _Atomic uint64_t inner;     /* calls from inside another MPI call (or a callback of one) */
    _Atomic uint64_t time_ns;   /* CLOCK_MONOTONIC, sum over the completed outermost calls */
    _Atomic uint64_t asked;     /* calls that the truth library itself made to learn what a call means */
    _Atomic uint64_t failed;    /* completed outermost calls of those whose meaning was asked for that returned an error */
};

struct truth_thread {
    _Atomic uint32_t tid;      /* 0: free slot */
    _Atomic uint32_t function; /* index + 1 of the outermost call that is open; 0: none */
    _Atomic uint64_t calls;    /* outermost calls this thread has entered */
};

struct truth_ended {
    _Atomic uint32_t tid; /* written last; 0: still being written */
    uint32_t unused;
    uint64_t calls;       /* outermost calls it had entered */
};

enum truth_kind { TRUTH_COMMUNICATOR = 1, TRUTH_WINDOW = 2, TRUTH_FILE = 3 };

/* A communicator, window or file, from its first use to its end. A handle that is freed and reused is another one. */
struct truth_scope {
    char name[128];           /* as MPI knows it (last one set); a file's is the one it was opened by */
    uint32_t kind;            /* enum truth_kind */
    int32_t rank;             /* of this process in it */
    uint32_t size;            /* of the local group */
    uint32_t members;         /* index of the first of `size` ranks in MPI_COMM_WORLD, sorted; -1: not in this world */
    uint32_t remote_size;     /* of an inter-communicator's other group; 0: no inter-communicator */
    uint32_t remote_members;
    uint32_t parent;          /* index + 1 of the communicator of a window or file; 0: not known */
    _Atomic uint32_t freed;
};

/* Who is at the other end: a rank in MPI_COMM_WORLD, or: */
enum truth_peer {
    TRUTH_PEER_NONE = -1,    /* nobody in particular: a collective, a file */
    TRUTH_PEER_NULL = -2,    /* MPI_PROC_NULL */
    TRUTH_PEER_ANY = -3,     /* a receive from MPI_ANY_SOURCE that is not complete, a probe for it */
    TRUTH_PEER_FOREIGN = -4, /* a process of another world */
};

struct truth_amount {
    _Atomic uint64_t receives, received, capacity;
};

struct truth_traffic {
    uint32_t function;     /* index of the function that posted the operation */
    uint32_t started_by;   /* index + 1 of MPI_Start or MPI_Startall; 0: the operation began with the call itself */
    uint32_t scope;        /* index + 1; 0: none */
    int32_t peer;          /* enum truth_peer, or a rank in MPI_COMM_WORLD */
    _Atomic uint64_t calls; /* that returned with success; operations started, if `started_by` */
    _Atomic uint64_t sends; /* messages, one-sided accesses and file accesses that carry data away; not of collectives */
    _Atomic uint64_t sent;  /* bytes */
    struct truth_amount received;  /* complete receives and reads */
    /* Of these, what a tool that only sees arguments and statuses cannot know: the program ignored the status. */
    struct truth_amount ignored;
    /* Of these, those whose source it cannot know either: MPI_ANY_SOURCE. */
    struct truth_amount hidden;
    _Atomic uint64_t open; /* requests that are posted or started, and not yet complete */
    uint64_t unused;
};

/* Room for events; further ones take the place of the first. */
#define TRUTH_EVENTS (1 << 16)
#define TRUTH_CHANGES (1 << 16)

struct truth_log {
    _Atomic uint32_t events, changes; /* that were logged */
    uint64_t unused[7];
};

/* Ranks in communicators as calls have them, tags too, and: */
enum truth_rank {
    TRUTH_NO_RANK = INT32_MIN, /* there is none */
    TRUTH_RANK_NULL = -1001,   /* MPI_PROC_NULL */
    TRUTH_RANK_ANY = -1002,    /* MPI_ANY_SOURCE, MPI_ANY_TAG */
    TRUTH_RANK_ROOT = -1003,   /* MPI_ROOT */
};

/* An outermost call that has returned. */
struct truth_event {
    uint32_t tid, number; /* which of the thread's calls that have returned, from 0 on */
    uint32_t function;
    uint32_t is_told; /* it is known what it means */
    uint64_t start_ns, end_ns;
    uint32_t scope; /* as in struct truth_traffic */
    int32_t result;
    int32_t destination, root;
    int32_t source, given_source; /* if it is complete, from whom; and as it was given */
    int32_t send_tag, receive_tag, given_tag;
    uint32_t is_ignored; /* the program does not look at the status */
    uint64_t sent, received, capacity;
    uint64_t request; /* 0: none that could be told from others */
    uint32_t lock;    /* of a window: 1 exclusive, 2 shared; 0: it locks none */
    uint32_t unused;
};

enum truth_change_kind { TRUTH_STARTED, TRUTH_COMPLETED, TRUTH_CANCELLED, TRUTH_FAILED, TRUTH_RELEASED };

/* What such a call has done to a request. */
struct truth_change {
    uint32_t tid, number; /* the call's */
    uint32_t kind;
    uint32_t function; /* that has posted the operation */
    uint32_t scope;
    int32_t source, given_source, tag;
    uint32_t is_ignored;
    uint32_t unused;
    uint64_t request, received, capacity;
};

_Static_assert(sizeof(struct truth_log) == 64, "layout");
_Static_assert(sizeof(struct truth_event) == 112, "layout");
_Static_assert(sizeof(struct truth_change) == 64, "layout");
_Static_assert(sizeof(struct truth_header) == 128, "layout");
_Static_assert(sizeof(struct truth_function) == 112, "layout");
_Static_assert(sizeof(struct truth_thread) == 16, "layout");
_Static_assert(sizeof(struct truth_ended) == 16, "layout");
_Static_assert(sizeof(struct truth_scope) == 160, "layout");
_Static_assert(sizeof(struct truth_traffic) == 128, "layout");

/* Made by the harness from the installed MPI's symbol tables (symbols.inc). */
extern const char *const truth_function_names[]; /* by function index */
extern const uint32_t truth_functions;
extern const char *const truth_symbol_names[];     /* by symbol index, as exported: MPI_Send, mpi_send_, … */
extern const uint32_t truth_symbol_functions[];    /* symbol index → function index */
extern _Atomic(void *) truth_symbol_next[];        /* symbol index → the next definition, once resolved */
extern void *const truth_symbol_typed[];           /* symbol index → wrapper that knows the prototype, or NULL */

/* The file of this process; NULL: nothing is counted. (truth.c) */
extern struct truth_header *truth_header;
extern struct truth_function *truth_counts;

/* Rank in MPI_COMM_WORLD as the launcher announced it, -1 without a launcher. (gate.c) */
int truth_rank(void);

/* Gates by name. Those named like a function are after each outermost call of it. (gate.c) */
int truth_gate_in_use(const char *gate);
void truth_gate_pass(const char *gate);

#endif
