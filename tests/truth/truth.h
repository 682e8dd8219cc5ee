/* Layout of the file that the truth library maps, one per process image. Read by tests/src/truth/file.rs: change both.
 *
 *   offset 0                     struct truth_header
 *   header.functions_offset      struct truth_function [header.functions]
 *   header.threads_offset        struct truth_thread   [header.threads]
 *
 * All words are in the machine's byte order. The mapping is shared, so that everything counted so far is in the file
 * whatever happens to the process, SIGKILL included. */
#ifndef MPIPROBE_TRUTH_H
#define MPIPROBE_TRUTH_H

#include <stdatomic.h>
#include <stdint.h>

#define TRUTH_MAGIC "MPITRUTH"
#define TRUTH_VERSION 1
#define TRUTH_THREADS 512

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
};

struct truth_function {
    char name[64];              /* the C name, zero padded, whatever the language of the call */
    _Atomic uint64_t entered;   /* outermost calls that began */
    _Atomic uint64_t completed; /* outermost calls that returned */
    _Atomic uint64_t inner;     /* calls from inside another MPI call (or a callback of one) */
    _Atomic uint64_t time_ns;   /* CLOCK_MONOTONIC, sum over the completed outermost calls */
};

struct truth_thread {
    _Atomic uint32_t tid;      /* 0: free slot */
    _Atomic uint32_t function; /* index + 1 of the outermost call that is open; 0: none */
    _Atomic uint64_t calls;    /* outermost calls this thread has entered */
};

_Static_assert(sizeof(struct truth_header) == 64, "layout");
_Static_assert(sizeof(struct truth_function) == 96, "layout");
_Static_assert(sizeof(struct truth_thread) == 16, "layout");

/* Made by the harness from the installed MPI's symbol tables (symbols.inc). */
extern const char *const truth_function_names[]; /* by function index */
extern const uint32_t truth_functions;
extern const char *const truth_symbol_names[];     /* by symbol index, as exported: MPI_Send, mpi_send_, … */
extern const uint32_t truth_symbol_functions[];    /* symbol index → function index */
extern _Atomic(void *) truth_symbol_next[];        /* symbol index → the next definition, once resolved */

/* Rank in MPI_COMM_WORLD as the launcher announced it, -1 without a launcher. (gate.c) */
int truth_rank(void);

#endif
