/* Counts the MPI calls of a process, independently of the profiler under test: every MPI symbol of the installed
 * libraries is interposed by a trampoline (trampoline.S) that calls truth_enter() before and truth_leave() after the
 * real function. Nothing here knows a single MPI prototype; what calls mean is the business of semantics/, whose wrappers
 * stand between trampoline and real function. */
#define _GNU_SOURCE
#include "truth.h"

#include "semantics/call.h"
#include "semantics/log.h"
#include "semantics/traffic.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

/* A thread needs to remember its outermost open call only; whatever is entered meanwhile is an inner call. */
struct thread_state {
    uintptr_t outermost; /* trampoline frame of the outermost open call, 0: none */
    uint32_t function;
    int told; /* the meaning of the open call is recorded */
    int found_nothing; /* the open call has only asked, in vain, whether something has happened */
    unsigned in_vain;  /* calls before it that did, one after the other */
    uint64_t start_ns, end_ns;
    uint32_t tid, returned; /* calls that have returned */
    struct truth_event event;
    struct truth_thread *slot;
};

static __thread struct thread_state self __attribute__((tls_model("initial-exec")));

struct truth_header *truth_header;
struct truth_function *truth_counts;
static struct truth_thread *threads;
static struct truth_ended *ended;
static bool *gated; /* by function: whether there is a gate after its calls */
static pthread_key_t thread_exit;

__attribute__((noreturn)) static void fail(const char *what, const char *name) {
    fprintf(stderr, "truth: %s %s: %s\n", what, name, strerror(errno));
    _exit(99);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Thread slots are for looking on only. A thread that ends gives its slot back, so that a program may start any number. In a
 * forked child the slots are the parent's. */
static void release_slot(void *slot) {
    struct truth_thread *thread = slot;
    if (truth_header == NULL)
        return;
    uint32_t number = atomic_fetch_add(&truth_header->ended, 1);
    if (number < TRUTH_ENDED) {
        ended[number].calls = atomic_load(&thread->calls);
        atomic_store(&ended[number].tid, atomic_load(&thread->tid));
    }
    atomic_store(&thread->function, 0);
    atomic_store(&thread->tid, 0);
    self.slot = NULL;
}

static struct truth_thread *claim_slot(void) {
    uint32_t tid = (uint32_t)syscall(SYS_gettid);
    for (uint32_t i = 0; i < TRUTH_THREADS; i++) {
        uint32_t free_slot = 0;
        if (atomic_load_explicit(&threads[i].tid, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&threads[i].tid, &free_slot, tid)) {
            atomic_store(&threads[i].calls, 0);
            pthread_setspecific(thread_exit, &threads[i]);
            return &threads[i];
        }
    }
    atomic_fetch_add(&truth_header->unlisted_threads, 1);
    static struct truth_thread unlisted; /* shared by all that are not listed, never looked at */
    return &unlisted;
}

static void *resolve(uint32_t symbol) {
    void *next = atomic_load_explicit(&truth_symbol_next[symbol], memory_order_acquire);
    if (next == NULL) {
        next = dlsym(RTLD_NEXT, truth_symbol_names[symbol]);
        if (next == NULL) {
            fprintf(stderr, "truth: no library defines %s\n", truth_symbol_names[symbol]);
            _exit(99);
        }
        atomic_store_explicit(&truth_symbol_next[symbol], next, memory_order_release);
    }
    return next;
}

extern const uint64_t truth_frame __attribute__((visibility("hidden")));

/* In the trampoline's frame, as long as its call is the outermost one that is open. The return address of the real function would not do:
 * an observer may have put another one there. */
static uintptr_t *mark_of(uintptr_t frame) {
    return (uintptr_t *)(frame - 200);
}

static uintptr_t mark(uintptr_t frame) {
    return frame ^ (uintptr_t)0x7472757468747275;
}

/* Whether the outermost call is still open, as a call sees it that begins now. Where the new one is on the stack does not tell: a
 * callback may go on on another stack, above or below. What leaves a call by longjmp or an exception is told below; of one that was
 * left in another way, the place may be in use again. */
static bool is_open(uintptr_t frame) {
    if (self.outermost == frame)
        return false;
    uintptr_t found = 0;
    /* The other stack may be gone, and the call with it. */
    struct iovec here = {&found, sizeof found}, there = {mark_of(self.outermost), sizeof found};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == sizeof found && found == mark(self.outermost);
}

/* A personality routine: unwinding calls it for each frame of a trampoline that it comes to. While it looks only, nothing is left. */
__attribute__((visibility("hidden"))) _Unwind_Reason_Code truth_unwound(int version, _Unwind_Action actions,
                                                                        _Unwind_Exception_Class class,
                                                                        struct _Unwind_Exception *exception,
                                                                        struct _Unwind_Context *context) {
    (void)version, (void)class, (void)exception;
    /* Somewhere in the trampoline's frame. */
    uintptr_t stack = _Unwind_GetCFA(context);
    if ((actions & _UA_CLEANUP_PHASE) && self.outermost != 0 && stack <= self.outermost + 16 &&
        stack + truth_frame + 16 >= self.outermost)
        self.outermost = 0;
    return _URC_CONTINUE_UNWIND;
}

/* A jump out of the open call, up its own stack, leaves it. The buffer's seventh word is the stack pointer, disguised. */
static void jumps(const uintptr_t *buffer) {
    uintptr_t guard, target = buffer[6], here = (uintptr_t)&guard;
    __asm__("mov %%fs:0x30, %0" : "=r"(guard));
    target = ((target >> 17) | (target << 47)) ^ guard;
    if (self.outermost != 0 && here < self.outermost && self.outermost < target)
        self.outermost = 0;
}

typedef void jump(const uintptr_t *buffer, int value);

#define JUMP(name)                                                              \
    void truth_##name(const uintptr_t *, int) __asm__(#name);                   \
    void truth_##name(const uintptr_t *buffer, int value) {                     \
        jump *next = (jump *)dlsym(RTLD_NEXT, #name);                           \
        jumps(buffer);                                                          \
        if (next == NULL)                                                       \
            fail("no library defines", #name);                                  \
        next(buffer, value);                                                    \
    }
JUMP(longjmp)
JUMP(_longjmp)
JUMP(siglongjmp)
JUMP(__longjmp_chk)

/* Called by the trampoline with its frame address; returns the real function, or the wrapper that goes before it. */
void *truth_enter(uint32_t symbol, uintptr_t frame) {
    void *next = truth_meaning ? truth_symbol_typed[symbol] : NULL;
    if (next == NULL)
        next = resolve(symbol);
    if (truth_header == NULL)
        return next;
    uint32_t function = truth_symbol_functions[symbol];
    if (self.outermost != 0 && is_open(frame)) {
        atomic_fetch_add_explicit(&truth_counts[function].inner, 1, memory_order_relaxed);
        return next;
    }
    if (self.slot == NULL)
        self.slot = claim_slot();
    atomic_fetch_add_explicit(&truth_counts[function].entered, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&self.slot->calls, 1, memory_order_relaxed);
    atomic_store_explicit(&self.slot->function, function + 1, memory_order_release);
    self.outermost = frame;
    *mark_of(frame) = mark(frame);
    self.function = function;
    self.told = 0;
    self.end_ns = 0;
    if (truth_logging) {
        if (self.tid == 0)
            self.tid = (uint32_t)syscall(SYS_gettid);
        self.event = (struct truth_event){.tid = self.tid,
                                          .number = self.returned,
                                          .function = function,
                                          .destination = TRUTH_NO_RANK,
                                          .root = TRUTH_NO_RANK,
                                          .source = TRUTH_NO_RANK,
                                          .given_source = TRUTH_NO_RANK,
                                          .send_tag = TRUTH_NO_RANK,
                                          .receive_tag = TRUTH_NO_RANK,
                                          .given_tag = TRUTH_NO_RANK};
    }
    self.start_ns = now_ns();
    return next;
}

/* The library's function is reached once in an outermost call, whatever the language; what it calls itself is no business
 * of the program's. */
int truth_tells(uint32_t function) {
    if (truth_header == NULL || !truth_meaning || self.outermost == 0 || self.function != function || self.told)
        return 0;
    self.told = 1;
    return 1;
}

struct truth_event *truth_open_event(void) {
    return truth_logging && truth_header != NULL && self.outermost != 0 ? &self.event : NULL;
}

void truth_found_nothing(void) {
    self.found_nothing = 1;
}

/* Programs ask until something has happened, on a machine that may be busy. The longer it takes, the more seldom: so that the log has
 * room for all of it. */
static void pause_between_questions(void) {
    if (!self.found_nothing) {
        self.in_vain = 0;
        return;
    }
    self.found_nothing = 0;
    unsigned most = 10;
    struct timespec time = {.tv_nsec = 1000L << (self.in_vain < most ? self.in_vain : most)};
    self.in_vain++;
    nanosleep(&time, NULL);
}

/* Around the real function: the questions that we ask are not part of the call's time. */
void truth_clock_start(void) {
    self.start_ns = now_ns();
}

void truth_clock_stop(void) {
    self.end_ns = now_ns();
}

void truth_leave(uintptr_t frame) {
    if (truth_header == NULL || frame != self.outermost)
        return;
    struct truth_function *function = &truth_counts[self.function];
    uint64_t end_ns = self.end_ns != 0 ? self.end_ns : now_ns();
    atomic_fetch_add_explicit(&function->time_ns, end_ns - self.start_ns, memory_order_relaxed);
    self.returned++;
    if (truth_logging) {
        self.event.start_ns = self.start_ns;
        self.event.end_ns = end_ns;
        truth_log_event(&self.event);
        pause_between_questions();
    }
    atomic_fetch_add_explicit(&function->completed, 1, memory_order_relaxed);
    atomic_store_explicit(&self.slot->function, 0, memory_order_release);
    self.outermost = 0;
    *mark_of(frame) = 0;
    if (gated[self.function])
        truth_gate_pass(truth_function_names[self.function]);
}

/* A forked child is not the rank: it stops counting (an exec starts a new image, with a file of its own). */
static void in_forked_child(void) {
    truth_header = NULL;
}

/* <directory>/truth-<pid>, or truth-<pid>.1 … for the images that follow in the same process by exec. */
static int create_file(const char *directory) {
    char path[4096];
    for (int image = 0; image < 10; image++) {
        int length = snprintf(path, sizeof path, "%s/truth-%d", directory, (int)getpid());
        if (image > 0)
            snprintf(path + length, sizeof path - (size_t)length, ".%d", image);
        int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (file >= 0)
            return file;
        if (errno != EEXIST)
            break;
    }
    fail("cannot create", path);
}

/* Runs before the constructor of gate.c, which may wait there. */
__attribute__((constructor(101))) static void start(void) {
    const char *directory = getenv("MPIPROBE_TRUTH_DIR");
    if (directory == NULL)
        return;
    uint64_t functions_offset = 4096;
    uint64_t threads_offset = functions_offset + truth_functions * sizeof(struct truth_function);
    uint64_t ended_offset = threads_offset + TRUTH_THREADS * sizeof(struct truth_thread);
    uint64_t scopes_offset = ended_offset + TRUTH_ENDED * sizeof(struct truth_ended);
    uint64_t log_offset = scopes_offset + (getenv("MPIPROBE_TRUTH_MEANING") != NULL ? truth_traffic_bytes() : 0);
    uint64_t size = log_offset + (getenv("MPIPROBE_TRUTH_LOG") != NULL ? truth_log_bytes() : 0);

    int file = create_file(directory);
    /* Allocated now: a full disk is an error here, not a SIGBUS in some MPI call. */
    if ((errno = posix_fallocate(file, 0, (off_t)size)) != 0)
        fail("cannot allocate a file in", directory);
    char *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (base == MAP_FAILED)
        fail("cannot map a file in", directory);
    close(file);

    struct truth_header *made = (struct truth_header *)base;
    truth_counts = (struct truth_function *)(base + functions_offset);
    threads = (struct truth_thread *)(base + threads_offset);
    ended = (struct truth_ended *)(base + ended_offset);
    gated = calloc(truth_functions, sizeof *gated);
    if (gated == NULL)
        fail("no memory for", "gates");
    for (uint32_t i = 0; i < truth_functions; i++) {
        strncpy(truth_counts[i].name, truth_function_names[i], sizeof truth_counts[i].name - 1);
        gated[i] = truth_gate_in_use(truth_function_names[i]) != 0;
    }
    made->version = TRUTH_VERSION;
    made->pid = (uint32_t)getpid();
    made->parent = (uint32_t)getppid();
    made->rank = truth_rank();
    made->created_ns = now_ns();
    made->functions = truth_functions;
    made->threads = TRUTH_THREADS;
    made->functions_offset = functions_offset;
    made->threads_offset = threads_offset;
    made->ended_offset = ended_offset;
    if (log_offset > scopes_offset)
        truth_traffic_place(made, scopes_offset);
    if (size > log_offset)
        truth_log_place(made, log_offset);
    atomic_thread_fence(memory_order_release);
    memcpy(made->magic, TRUTH_MAGIC, sizeof made->magic);

    if (pthread_key_create(&thread_exit, release_slot) != 0)
        fail("cannot create", "a thread key");
    pthread_atfork(NULL, NULL, in_forked_child);
    truth_header = made;
}
