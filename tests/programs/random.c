/* random SEED [STEPS [THREADS]]: legal calls of MPI in an order that nobody has thought of. All ranks draw the same numbers, so that they agree on
 * who does what; how a rank completes its requests, and whether it wants to know a status, it draws for itself. What it calls is counted by the
 * truth library. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMMUNICATORS = 12, MESSAGES = 8, ROOM = 1 << 19, ARENA = 1 << 22, BUFFERED = 1 << 26, MOST_RANKS = 16, REQUESTS = 64 };

struct random {
    uint64_t state;
};

/* splitmix64, by Sebastiano Vigna. */
static uint64_t next(struct random *random) {
    uint64_t z = random->state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

enum kind { INTRA, CART, GRAPH, INTER };

struct communicator {
    MPI_Comm handle; /* MPI_COMM_NULL at ranks that are not in it */
    enum kind kind;
    int is_used; /* the same at all ranks */
};

/* What a thread works with. */
struct worker {
    struct random shared, own, step;
    struct communicator pool[COMMUNICATORS];
    char *out, *in;
    int steps, number;
};

static int draw(struct worker *w, int n) { return (int)(next(&w->step) % (uint64_t)n); }
static int choose(struct worker *w, int n) { return (int)(next(&w->own) % (uint64_t)n); }

/* --- Datatypes ---------------------------------------------------------------------------------------------------------------- */

static MPI_Datatype any_type(struct worker *w, int *is_derived) {
    MPI_Datatype type, inner;
    *is_derived = 1;
    switch (draw(w, 13)) {
    case 0: MPI_Type_contiguous(3, MPI_INT, &type); break;
    case 1: MPI_Type_vector(4, 2, 5, MPI_INT, &type); break;
    case 2: {
        int lengths[2] = {1, 2};
        MPI_Aint places[2] = {0, 8};
        MPI_Datatype types[2] = {MPI_CHAR, MPI_DOUBLE};
        MPI_Type_create_struct(2, lengths, places, types, &type);
        break;
    }
    case 3: MPI_Type_create_resized(MPI_SHORT, 0, 16, &type); break;
    case 4: {
        int lengths[3] = {1, 0, 3}, places[3] = {0, 2, 4};
        MPI_Type_indexed(3, lengths, places, MPI_INT, &type);
        break;
    }
    case 5: MPI_Type_contiguous(0, MPI_INT, &type); break;
    case 6: {
        int sizes[2] = {6, 6}, parts[2] = {2, 3}, starts[2] = {1, 1};
        MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_FLOAT, &type);
        break;
    }
    case 7:
        MPI_Type_vector(2, 1, 3, MPI_INT, &inner);
        MPI_Type_contiguous(2, inner, &type);
        MPI_Type_free(&inner);
        break;
    case 8: MPI_Type_dup(MPI_DOUBLE, &type); break;
    case 9: *is_derived = 0; return MPI_DOUBLE_INT;
    case 10: *is_derived = 0; return MPI_LONG_LONG;
    case 11: *is_derived = 0; return MPI_CHAR;
    default: *is_derived = 0; return MPI_INT;
    }
    MPI_Type_commit(&type);
    return type;
}

/* Of reductions. */
static MPI_Datatype number_type(struct worker *w) {
    MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_LONG, MPI_UNSIGNED_CHAR};
    return types[draw(w, sizeof types / sizeof *types)];
}

/* --- Requests ----------------------------------------------------------------------------------------------------------------- */

static void complete(struct worker *w, MPI_Request *requests, int n) {
    MPI_Status statuses[REQUESTS], *all = choose(w, 2) ? statuses : MPI_STATUSES_IGNORE;
    MPI_Status *one = choose(w, 2) ? statuses : MPI_STATUS_IGNORE;
    int indices[REQUESTS], index, done = 0, some;
    switch (choose(w, 9)) {
    case 0: MPI_Waitall(n, requests, all); return;
    case 1:
        for (int i = n; i-- > 0;)
            MPI_Wait(&requests[i], one);
        return;
    case 2:
        do
            MPI_Waitany(n, requests, &index, one);
        while (index != MPI_UNDEFINED);
        return;
    case 3:
        do
            MPI_Waitsome(n, requests, &some, indices, all);
        while (some != MPI_UNDEFINED);
        return;
    case 4:
        while (!done)
            MPI_Testall(n, requests, &done, all);
        return;
    case 5:
        do
            MPI_Testany(n, requests, &index, &done, one);
        while (!done || index != MPI_UNDEFINED);
        return;
    case 6:
        do
            MPI_Testsome(n, requests, &some, indices, all);
        while (some != MPI_UNDEFINED);
        return;
    case 7:
        for (int i = 0; i < n; i++)
            for (done = 0; !done;)
                MPI_Test(&requests[i], &done, one);
        return;
    default:
        for (int i = 0; i < n; i++) {
            for (done = 0; !done;)
                MPI_Request_get_status(requests[i], &done, one);
            MPI_Wait(&requests[i], one);
        }
        return;
    }
}

/* --- Messages ----------------------------------------------------------------------------------------------------------------- */

struct message {
    int source, destination; /* in their groups */
    int tag, count, room;    /* of items, what the receiver has room for */
    MPI_Datatype type;
    int is_derived, from_any, with_any_tag, is_mine_to_send, is_mine_to_receive;
};

static int of_group(MPI_Comm c, enum kind kind, int *size, int *others) {
    int rank;
    MPI_Comm_rank(c, &rank);
    MPI_Comm_size(c, size);
    *others = *size;
    if (kind == INTER)
        MPI_Comm_remote_size(c, others);
    return rank;
}

/* Which of the two groups of an inter-communicator this is, as all of its ranks see it: known from when it was made. */
static int half_keyval = MPI_KEYVAL_INVALID;

static int half_of(MPI_Comm c) {
    void *value;
    int found;
    MPI_Comm_get_attr(c, half_keyval, &value, &found);
    return found ? (int)(intptr_t)value : 0;
}

/* Receives of one step are all alike if they leave something open: none takes a message that another one has to wait for. */
enum wild { ANYTHING, FROM_ANY, WITH_ANY_TAG, FROM_KNOWN };

static int make_messages(struct worker *w, struct communicator *c, struct message *messages, int is_persistent, int *is_wild) {
    int size, others, rank = of_group(c->handle, c->kind, &size, &others), half = c->kind == INTER ? half_of(c->handle) : 0;
    int n = 1 + draw(w, MESSAGES), wild = draw(w, 6);
    *is_wild = wild < FROM_KNOWN;
    for (int i = 0; i < n; i++) {
        struct message *m = &messages[i];
        int from_half = draw(w, 2), of_source = size, of_destination = others;
        if (c->kind == INTER && from_half != half)
            of_source = others, of_destination = size;
        /* The same at all ranks: drawn from a fixed range. */
        m->source = draw(w, 1 << 20) % of_source;
        m->destination = draw(w, 1 << 20) % of_destination;
        m->tag = draw(w, 3) * 100 + (is_persistent ? i : 0);
        m->count = draw(w, 4) == 0 ? 0 : draw(w, 150);
        if (draw(w, 12) == 0)
            m->count = 2000;
        m->room = m->count + draw(w, 3) * 5;
        m->type = any_type(w, &m->is_derived);
        m->from_any = wild == ANYTHING || wild == FROM_ANY;
        m->with_any_tag = wild == ANYTHING || wild == WITH_ANY_TAG;
        if (*is_wild) {
            if (wild == FROM_ANY)
                m->tag = 100;
            /* Whichever message comes, there is room. */
            if (m->is_derived)
                MPI_Type_free(&m->type);
            m->type = MPI_BYTE, m->is_derived = 0, m->room = 4000;
        }
        m->is_mine_to_send = rank == m->source && (c->kind != INTER || from_half == half);
        m->is_mine_to_receive = rank == m->destination && (c->kind != INTER || from_half != half);
    }
    return n;
}

static void forget(struct message *messages, int n) {
    for (int i = 0; i < n; i++)
        if (messages[i].is_derived && messages[i].type != MPI_DATATYPE_NULL)
            MPI_Type_free(&messages[i].type);
}

static int source_of(const struct message *m) { return m->from_any ? MPI_ANY_SOURCE : m->source; }
static int tag_of(const struct message *m) { return m->with_any_tag ? MPI_ANY_TAG : m->tag; }

/* Receives are there before anything is sent. */
static int receives_first(struct worker *w, struct communicator *c) {
    struct message messages[MESSAGES];
    MPI_Request requests[REQUESTS];
    int is_wild, n = make_messages(w, c, messages, 0, &is_wild), asked = 0, is_ready = draw(w, 3) == 0;
    for (int i = 0; i < n; i++) {
        struct message *m = &messages[i];
        if (m->is_mine_to_receive)
            MPI_Irecv(w->in + i * ROOM, m->room, m->type, source_of(m), tag_of(m), c->handle, &requests[asked++]);
        else if (choose(w, 10) == 0)
            requests[asked++] = MPI_REQUEST_NULL;
    }
    if (is_ready)
        MPI_Barrier(c->handle);
    for (int i = 0; i < n; i++) {
        struct message *m = &messages[i];
        char *buffer = w->out + i * ROOM;
        if (!m->is_mine_to_send)
            continue;
        switch (choose(w, is_ready ? 8 : 6)) {
        case 0: MPI_Send(buffer, m->count, m->type, m->destination, m->tag, c->handle); break;
        case 1:
            if (m->source != m->destination || c->kind == INTER) {
                MPI_Ssend(buffer, m->count, m->type, m->destination, m->tag, c->handle);
                break;
            }
            /* fall through */
        case 2: MPI_Isend(buffer, m->count, m->type, m->destination, m->tag, c->handle, &requests[asked++]); break;
        case 3: MPI_Issend(buffer, m->count, m->type, m->destination, m->tag, c->handle, &requests[asked++]); break;
        case 4: MPI_Bsend(buffer, m->count, m->type, m->destination, m->tag, c->handle); break;
        case 5: MPI_Ibsend(buffer, m->count, m->type, m->destination, m->tag, c->handle, &requests[asked++]); break;
        case 6: MPI_Rsend(buffer, m->count, m->type, m->destination, m->tag, c->handle); break;
        default: MPI_Irsend(buffer, m->count, m->type, m->destination, m->tag, c->handle, &requests[asked++]); break;
        }
    }
    /* Types may go while they are in use. */
    if (choose(w, 2))
        forget(messages, n), n = 0;
    complete(w, requests, asked);
    forget(messages, n);
    return is_wild;
}

static void receive(struct worker *w, struct communicator *c, struct message *m, char *buffer) {
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    int is_there = 0, count;
    switch (choose(w, 7)) {
    case 0:
        MPI_Probe(source_of(m), tag_of(m), c->handle, &status);
        MPI_Recv(buffer, m->room, m->type, status.MPI_SOURCE, status.MPI_TAG, c->handle, MPI_STATUS_IGNORE);
        return;
    case 1:
        while (!is_there)
            MPI_Iprobe(source_of(m), tag_of(m), c->handle, &is_there, &status);
        MPI_Recv(buffer, m->room, m->type, status.MPI_SOURCE, status.MPI_TAG, c->handle, &status);
        return;
    case 2:
        MPI_Mprobe(source_of(m), tag_of(m), c->handle, &message, &status);
        MPI_Get_count(&status, m->type, &count);
        MPI_Mrecv(buffer, m->room, m->type, &message, &status);
        return;
    case 3:
        while (!is_there)
            MPI_Improbe(source_of(m), tag_of(m), c->handle, &is_there, &message, MPI_STATUS_IGNORE);
        MPI_Imrecv(buffer, m->room, m->type, &message, &request);
        complete(w, &request, 1);
        return;
    case 4:
        MPI_Irecv(buffer, m->room, m->type, source_of(m), tag_of(m), c->handle, &request);
        complete(w, &request, 1);
        return;
    case 5: MPI_Recv(buffer, m->room, m->type, source_of(m), tag_of(m), c->handle, MPI_STATUS_IGNORE); return;
    default: MPI_Recv(buffer, m->room, m->type, source_of(m), tag_of(m), c->handle, &status); return;
    }
}

/* Everything is under way before anybody receives. */
static int sends_first(struct worker *w, struct communicator *c) {
    struct message messages[MESSAGES];
    MPI_Request requests[REQUESTS];
    int is_wild, n = make_messages(w, c, messages, 0, &is_wild), asked = 0;
    for (int i = 0; i < n; i++) {
        struct message *m = &messages[i];
        char *buffer = w->out + i * ROOM;
        if (!m->is_mine_to_send)
            continue;
        switch (choose(w, 4)) {
        case 0: MPI_Isend(buffer, m->count, m->type, m->destination, m->tag, c->handle, &requests[asked++]); break;
        case 1: MPI_Issend(buffer, m->count, m->type, m->destination, m->tag, c->handle, &requests[asked++]); break;
        case 2: MPI_Bsend(buffer, m->count, m->type, m->destination, m->tag, c->handle); break;
        default: MPI_Ibsend(buffer, m->count, m->type, m->destination, m->tag, c->handle, &requests[asked++]); break;
        }
    }
    for (int i = 0; i < n; i++)
        if (messages[i].is_mine_to_receive)
            receive(w, c, &messages[i], w->in + i * ROOM);
    complete(w, requests, asked);
    forget(messages, n);
    return is_wild;
}

static int persistent(struct worker *w, struct communicator *c) {
    struct message messages[MESSAGES];
    MPI_Request requests[REQUESTS], copies[REQUESTS];
    int is_wild, n = make_messages(w, c, messages, 1, &is_wild), asked = 0, rounds = draw(w, 4);
    for (int i = 0; i < n; i++) {
        struct message *m = &messages[i];
        if (m->is_mine_to_receive)
            MPI_Recv_init(w->in + i * ROOM, m->room, m->type, source_of(m), tag_of(m), c->handle, &requests[asked++]);
    }
    for (int i = 0; i < n; i++) {
        struct message *m = &messages[i];
        char *buffer = w->out + i * ROOM;
        if (!m->is_mine_to_send)
            continue;
        switch (choose(w, 3)) {
        case 0: MPI_Send_init(buffer, m->count, m->type, m->destination, m->tag, c->handle, &requests[asked++]); break;
        case 1: MPI_Ssend_init(buffer, m->count, m->type, m->destination, m->tag, c->handle, &requests[asked++]); break;
        default: MPI_Bsend_init(buffer, m->count, m->type, m->destination, m->tag, c->handle, &requests[asked++]); break;
        }
    }
    forget(messages, n);
    for (int round = 0; round < rounds; round++) {
        /* A message of the next round would take the place of one of this that somebody waits for. */
        if (is_wild && round > 0)
            MPI_Barrier(c->handle);
        if (choose(w, 2))
            MPI_Startall(asked, requests);
        else
            for (int i = 0; i < asked; i++)
                MPI_Start(&requests[i]);
        memcpy(copies, requests, sizeof requests);
        complete(w, choose(w, 2) ? copies : requests, asked);
        if (choose(w, 4) == 0)
            /* They are inactive now. */
            complete(w, requests, asked);
    }
    for (int i = 0; i < asked; i++)
        MPI_Request_free(&requests[i]);
    return is_wild;
}

static void shift(struct worker *w, struct communicator *c) {
    int size, others, rank = of_group(c->handle, c->kind, &size, &others), by = draw(w, 1 << 20), is_open = draw(w, 2);
    if (c->kind == INTER)
        return;
    by = 1 + by % size;
    int right = rank + by, left = rank - by, count = draw(w, 300), times = 1 + draw(w, 4);
    right = is_open && right >= size ? MPI_PROC_NULL : right % size;
    left = is_open && left < 0 ? MPI_PROC_NULL : (left + size) % size;
    MPI_Status status;
    for (int i = 0; i < times; i++)
        if (choose(w, 1 + i) == 0 || i > 2)
            MPI_Sendrecv(w->out, count, MPI_INT, right, 7, w->in, count + 3, MPI_INT, left, choose(w, 2) ? 7 : MPI_ANY_TAG, c->handle,
                         choose(w, 2) ? &status : MPI_STATUS_IGNORE);
        else
            MPI_Sendrecv_replace(w->out, count, MPI_INT, right, 7, left, 7, c->handle, choose(w, 2) ? &status : MPI_STATUS_IGNORE);
}

/* What is in error, cancelled or given away. */
static void odd(struct worker *w, struct communicator *c) {
    int size, others, rank = of_group(c->handle, c->kind, &size, &others), flag;
    MPI_Request request;
    MPI_Status status;
    MPI_Errhandler before;
    if (c->kind == INTER)
        return;
    MPI_Comm_get_errhandler(c->handle, &before);
    MPI_Comm_set_errhandler(c->handle, MPI_ERRORS_RETURN);
    switch (draw(w, 8)) {
    case 0: MPI_Send(w->out, 3, MPI_INT, size + 5, 1, c->handle); break;
    case 1: MPI_Recv(w->in, -1, MPI_INT, rank, 1, c->handle, &status); break;
    case 2:
        MPI_Irecv(w->in, 10, MPI_INT, rank, 999, c->handle, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &flag);
        break;
    case 3:
        MPI_Isend(w->out, 12, MPI_INT, rank, 998, c->handle, &request);
        MPI_Recv(w->in, 5, MPI_INT, rank, 998, c->handle, &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    case 4:
        MPI_Irecv(w->in, 4, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, c->handle, &request);
        complete(w, &request, 1);
        MPI_Send(w->out, 400, MPI_INT, MPI_PROC_NULL, 1, c->handle);
        MPI_Recv(w->in, 400, MPI_INT, MPI_PROC_NULL, 1, c->handle, &status);
        break;
    case 5:
        /* To itself, and nobody waits for the send. */
        MPI_Isend(w->out, 12, MPI_INT, rank, 997, c->handle, &request);
        MPI_Request_free(&request);
        MPI_Recv(w->in, 12, MPI_INT, rank, 997, c->handle, &status);
        break;
    case 6: MPI_Bcast(w->out, 3, MPI_INT, size + 1, c->handle); break;
    default:
        MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
        request = MPI_REQUEST_NULL;
        MPI_Wait(&request, &status);
        MPI_Iprobe(MPI_ANY_SOURCE, 12345, c->handle, &flag, MPI_STATUS_IGNORE);
        break;
    }
    MPI_Comm_set_errhandler(c->handle, before);
    if (before != MPI_ERRORS_ARE_FATAL && before != MPI_ERRORS_RETURN)
        MPI_Errhandler_free(&before);
}

/* --- Collectives -------------------------------------------------------------------------------------------------------------- */

/* Of each rank, the counts that all know. */
static void counts_of(struct worker *w, int n, int *counts, int *places) {
    for (int i = 0, place = 0; i < n; i++) {
        counts[i] = draw(w, 5) * 7;
        places[i] = place;
        place += counts[i] + draw(w, 2);
    }
}

static void collective(struct worker *w, struct communicator *c) {
    int size, others, rank = of_group(c->handle, c->kind, &size, &others), is_inter = c->kind == INTER;
    int root_half = draw(w, 2), root = draw(w, 1 << 20), count = draw(w, 60), in_place = !is_inter && draw(w, 3) == 0;
    int op = draw(w, is_inter ? 14 : 17), is_nonblocking = draw(w, 3) == 0, is_derived, half = is_inter ? half_of(c->handle) : 0;
    int counts[MOST_RANKS], places[MOST_RANKS], is_root, both = is_inter ? others : size, all[MOST_RANKS * MOST_RANKS];
    MPI_Datatype type = any_type(w, &is_derived), number = number_type(w);
    MPI_Comm h = c->handle;
    MPI_Request request = MPI_REQUEST_NULL;
    void *out = w->out, *in = w->in;
    MPI_Op sum = MPI_SUM;
    if (is_inter) {
        int of_root = root_half == half ? size : others;
        root %= of_root;
        is_root = root_half == half && rank == root;
        root = root_half != half ? root : is_root ? MPI_ROOT : MPI_PROC_NULL;
    } else {
        root %= size;
        is_root = rank == root;
    }
    counts_of(w, MOST_RANKS, counts, places);
    for (int i = 0; i < MOST_RANKS * MOST_RANKS; i++)
        all[i] = draw(w, 4) * 5;
#define EITHER(blocking, nonblocking) (is_nonblocking ? (nonblocking) : (blocking))
    switch (op) {
    case 0: EITHER(MPI_Barrier(h), MPI_Ibarrier(h, &request)); break;
    case 1: EITHER(MPI_Bcast(out, count, type, root, h), MPI_Ibcast(out, count, type, root, h, &request)); break;
    case 2: {
        void *from = in_place && is_root ? MPI_IN_PLACE : out;
        EITHER(MPI_Gather(from, count, type, in, count, type, root, h), MPI_Igather(from, count, type, in, count, type, root, h, &request));
        break;
    }
    case 3: {
        void *to = in_place && is_root ? MPI_IN_PLACE : in;
        EITHER(MPI_Scatter(out, count, type, to, count, type, root, h), MPI_Iscatter(out, count, type, to, count, type, root, h, &request));
        break;
    }
    case 4: {
        void *from = in_place ? MPI_IN_PLACE : out;
        EITHER(MPI_Allgather(from, count, MPI_INT, in, count, MPI_INT, h), MPI_Iallgather(from, count, MPI_INT, in, count, MPI_INT, h, &request));
        break;
    }
    case 5: {
        void *from = in_place ? MPI_IN_PLACE : out;
        EITHER(MPI_Alltoall(from, count, type, in, count, type, h), MPI_Ialltoall(from, count, type, in, count, type, h, &request));
        break;
    }
    case 6: {
        void *from = in_place && is_root ? MPI_IN_PLACE : out;
        EITHER(MPI_Reduce(from, in, count, number, sum, root, h), MPI_Ireduce(from, in, count, number, sum, root, h, &request));
        break;
    }
    case 7: {
        void *from = in_place ? MPI_IN_PLACE : out;
        EITHER(MPI_Allreduce(from, in, count, number, sum, h), MPI_Iallreduce(from, in, count, number, sum, h, &request));
        break;
    }
    case 8: {
        /* What a rank gives to the root is its own count. */
        int mine = is_inter && root_half == half ? 0 : counts[rank];
        void *from = in_place && is_root ? MPI_IN_PLACE : out;
        EITHER(MPI_Gatherv(from, mine, MPI_INT, in, counts, places, MPI_INT, root, h),
               MPI_Igatherv(from, mine, MPI_INT, in, counts, places, MPI_INT, root, h, &request));
        break;
    }
    case 9: {
        int mine = is_inter && root_half == half ? 0 : counts[rank];
        void *to = in_place && is_root ? MPI_IN_PLACE : in;
        EITHER(MPI_Scatterv(out, counts, places, MPI_INT, to, mine, MPI_INT, root, h),
               MPI_Iscatterv(out, counts, places, MPI_INT, to, mine, MPI_INT, root, h, &request));
        break;
    }
    case 10: {
        void *from = in_place ? MPI_IN_PLACE : out;
        EITHER(MPI_Allgatherv(from, counts[rank], MPI_DOUBLE, in, counts, places, MPI_DOUBLE, h),
               MPI_Iallgatherv(from, counts[rank], MPI_DOUBLE, in, counts, places, MPI_DOUBLE, h, &request));
        break;
    }
    case 11: {
        /* Between i and j the same both ways: with MPI_IN_PLACE the counts are of both. */
        int sends[MOST_RANKS], offsets[MOST_RANKS];
        for (int i = 0; i < both; i++) {
            int low = i < rank ? i : rank, high = i < rank ? rank : i;
            sends[i] = all[low * MOST_RANKS + high];
            offsets[i] = i * 20;
        }
        void *from = in_place ? MPI_IN_PLACE : out;
        EITHER(MPI_Alltoallv(from, sends, offsets, MPI_INT, in, sends, offsets, MPI_INT, h),
               MPI_Ialltoallv(from, sends, offsets, MPI_INT, in, sends, offsets, MPI_INT, h, &request));
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    }
    case 12: {
        int sends[MOST_RANKS], offsets[MOST_RANKS];
        MPI_Datatype types[MOST_RANKS];
        for (int i = 0; i < both; i++) {
            int low = i < rank ? i : rank, high = i < rank ? rank : i;
            sends[i] = all[low * MOST_RANKS + high];
            offsets[i] = i * 200;
            types[i] = (low + high) % 2 ? MPI_DOUBLE : MPI_SHORT;
        }
        EITHER(MPI_Alltoallw(out, sends, offsets, types, in, sends, offsets, types, h),
               MPI_Ialltoallw(out, sends, offsets, types, in, sends, offsets, types, h, &request));
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    }
    case 13: {
        /* Both groups of an inter-communicator have to have as many items. */
        int total = is_inter ? size * others * (count % 8) : size * count;
        int mine = is_inter ? total / size : count;
        EITHER(MPI_Reduce_scatter_block(out, in, mine, number, sum, h), MPI_Ireduce_scatter_block(out, in, mine, number, sum, h, &request));
        break;
    }
    case 14: {
        void *from = in_place ? MPI_IN_PLACE : out;
        EITHER(MPI_Reduce_scatter(from, in, counts, number, sum, h), MPI_Ireduce_scatter(from, in, counts, number, sum, h, &request));
        break;
    }
    case 15: {
        void *from = in_place ? MPI_IN_PLACE : out;
        EITHER(MPI_Scan(from, in, count, number, sum, h), MPI_Iscan(from, in, count, number, sum, h, &request));
        break;
    }
    default: {
        void *from = in_place ? MPI_IN_PLACE : out;
        EITHER(MPI_Exscan(from, in, count, number, sum, h), MPI_Iexscan(from, in, count, number, sum, h, &request));
        break;
    }
    }
    if (is_derived)
        MPI_Type_free(&type);
    if (is_nonblocking)
        complete(w, &request, 1);
}

static void neighbourhood(struct worker *w, struct communicator *c) {
    int count = draw(w, 40), op = draw(w, 5), is_nonblocking = draw(w, 3) == 0, counts[MOST_RANKS * 2], places[MOST_RANKS * 2];
    MPI_Aint offsets[MOST_RANKS * 2];
    MPI_Datatype types[MOST_RANKS * 2];
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm h = c->handle;
    void *out = w->out, *in = w->in;
    for (int i = 0; i < MOST_RANKS * 2; i++)
        counts[i] = count, places[i] = i * 64, offsets[i] = i * 512, types[i] = MPI_INT;
    switch (op) {
    case 0:
        EITHER(MPI_Neighbor_allgather(out, count, MPI_INT, in, count, MPI_INT, h),
               MPI_Ineighbor_allgather(out, count, MPI_INT, in, count, MPI_INT, h, &request));
        break;
    case 1:
        EITHER(MPI_Neighbor_allgatherv(out, count, MPI_INT, in, counts, places, MPI_INT, h),
               MPI_Ineighbor_allgatherv(out, count, MPI_INT, in, counts, places, MPI_INT, h, &request));
        break;
    case 2:
        EITHER(MPI_Neighbor_alltoall(out, count, MPI_INT, in, count, MPI_INT, h),
               MPI_Ineighbor_alltoall(out, count, MPI_INT, in, count, MPI_INT, h, &request));
        break;
    case 3:
        EITHER(MPI_Neighbor_alltoallv(out, counts, places, MPI_INT, in, counts, places, MPI_INT, h),
               MPI_Ineighbor_alltoallv(out, counts, places, MPI_INT, in, counts, places, MPI_INT, h, &request));
        break;
    default:
        EITHER(MPI_Neighbor_alltoallw(out, counts, offsets, types, in, counts, offsets, types, h),
               MPI_Ineighbor_alltoallw(out, counts, offsets, types, in, counts, offsets, types, h, &request));
        break;
    }
    if (is_nonblocking)
        complete(w, &request, 1);
}

/* --- Communicators ------------------------------------------------------------------------------------------------------------ */

static void keep(struct worker *w, MPI_Comm handle, enum kind kind) {
    for (int i = 0; i < COMMUNICATORS; i++)
        if (!w->pool[i].is_used) {
            w->pool[i] = (struct communicator){handle, kind, 1};
            return;
        }
    abort();
}

/* A communicator of the pool is made by ranks of one of it, but all ranks must agree on the pool: called by those that are not in it, too. */
static void make(struct worker *w, struct communicator *c) {
    int size = 0, others = 0, rank = 0, op = draw(w, 8), mask = 1 + draw(w, 1 << 16), colours = 1 + draw(w, 3), reorder = draw(w, 2);
    int is_part = c->kind == CART && op == 2 && draw(w, 2);
    MPI_Comm made = MPI_COMM_NULL, h = c->handle;
    enum kind kind = c->kind;
    if (c->kind == INTER)
        op = op % 2 ? 0 : 7;
    else if (op == 7)
        op = 6;
    if (h != MPI_COMM_NULL)
        rank = of_group(h, kind, &size, &others);
    if (h == MPI_COMM_NULL) {
        kind = op == 4 ? CART : op == 5 ? GRAPH : op == 6 ? INTER : op == 7 || kind != INTER ? INTRA : INTER;
        if (op <= 1 || is_part)
            kind = c->kind;
        keep(w, MPI_COMM_NULL, kind);
        return;
    }
    switch (op) {
    case 0: MPI_Comm_dup(h, &made); break;
    case 1: {
        MPI_Request request;
        MPI_Comm_idup(h, &made, &request);
        complete(w, &request, 1);
        break;
    }
    case 2:
        if (is_part) {
            int kept[2] = {mask & 1, mask >> 1 & 1};
            MPI_Cart_sub(h, kept, &made);
            break;
        }
        MPI_Comm_split(h, (mask >> rank) % 4 == 3 ? MPI_UNDEFINED : rank % colours, reorder ? -rank : rank, &made);
        kind = INTRA;
        break;
    case 3: {
        MPI_Group all, some;
        int members[MOST_RANKS], n = 0, mine = 0;
        for (int i = 0; i < size; i++)
            if (mask >> i & 1)
                members[n++] = i, mine |= i == rank;
        MPI_Comm_group(h, &all);
        MPI_Group_incl(all, n, members, &some);
        if (!reorder)
            MPI_Comm_create(h, some, &made);
        else if (mine)
            MPI_Comm_create_group(h, some, 5, &made);
        MPI_Group_free(&some);
        MPI_Group_free(&all);
        kind = INTRA;
        break;
    }
    case 4: {
        int dimensions[2] = {0, 0}, periods[2] = {mask & 1, mask >> 1 & 1};
        MPI_Dims_create(size, 2, dimensions);
        MPI_Cart_create(h, 2, dimensions, periods, reorder, &made);
        kind = CART;
        break;
    }
    case 5: {
        int left = (rank + size - 1) % size, right = (rank + 1) % size, from[2] = {left, rank}, to[2] = {right, rank};
        MPI_Dist_graph_create_adjacent(h, 2, from, MPI_UNWEIGHTED, 2, to, MPI_UNWEIGHTED, MPI_INFO_NULL, reorder, &made);
        kind = GRAPH;
        break;
    }
    case 6: {
        /* Two halves, if there are. */
        MPI_Comm local;
        int half = rank >= (size + 1) / 2;
        kind = INTER;
        if (size < 2)
            break;
        MPI_Comm_split(h, half, 0, &local);
        MPI_Intercomm_create(local, 0, h, half ? 0 : (size + 1) / 2, 77, &made);
        MPI_Comm_free(&local);
        MPI_Comm_set_attr(made, half_keyval, (void *)(intptr_t)half);
        break;
    }
    default:
        MPI_Intercomm_merge(h, half_of(h), &made);
        kind = INTRA;
        break;
    }
    if (made != MPI_COMM_NULL && reorder && choose(w, 2)) {
        char name[32];
        snprintf(name, sizeof name, "made %d", op);
        MPI_Comm_set_name(made, name);
    }
    keep(w, made, kind);
}

/* --- One-sided ---------------------------------------------------------------------------------------------------------------- */

static void access_window(struct worker *w, MPI_Win window, int size, int is_passive, int target) {
    int count = choose(w, 30), compare = 0, times = choose(w, 5);
    MPI_Request requests[4];
    for (int i = 0; i < times; i++) {
        int at = is_passive ? target : choose(w, size + 1);
        if (at == size)
            at = MPI_PROC_NULL;
        switch (choose(w, is_passive ? 9 : 6)) {
        case 0: MPI_Put(w->out, count, MPI_INT, at, 0, count, MPI_INT, window); break;
        case 1: MPI_Get(w->in + i * ROOM, count, MPI_INT, at, 64, count, MPI_INT, window); break;
        case 2: MPI_Accumulate(w->out, count, MPI_INT, at, 128, count, MPI_INT, MPI_SUM, window); break;
        case 3: MPI_Get_accumulate(w->out, count, MPI_INT, w->in + i * ROOM, count, MPI_INT, at, 128, count, MPI_INT, choose(w, 2) ? MPI_SUM : MPI_NO_OP, window); break;
        case 4: MPI_Fetch_and_op(w->out, w->in + i * ROOM, MPI_INT, at, 1, MPI_SUM, window); break;
        case 5: MPI_Compare_and_swap(w->out, &compare, w->in + i * ROOM, MPI_INT, at, 2, window); break;
        case 6:
            MPI_Rput(w->out, count, MPI_INT, at, 0, count, MPI_INT, window, &requests[0]);
            complete(w, requests, 1);
            break;
        case 7:
            MPI_Rget(w->in + i * ROOM, count, MPI_INT, at, 0, count, MPI_INT, window, &requests[0]);
            MPI_Raccumulate(w->out, count, MPI_INT, at, 128, count, MPI_INT, MPI_SUM, window, &requests[1]);
            complete(w, requests, 2);
            break;
        default: MPI_Win_flush(at == MPI_PROC_NULL ? target : at, window); break;
        }
    }
}

static void window(struct worker *w, struct communicator *c) {
    int size, others, rank = of_group(c->handle, c->kind, &size, &others), how = draw(w, 3), epochs = 1 + draw(w, 3);
    MPI_Win window;
    int *base = NULL;
    if (how == 0) {
        MPI_Alloc_mem(4096, MPI_INFO_NULL, &base);
        MPI_Win_create(base, 4096, sizeof(int), MPI_INFO_NULL, c->handle, &window);
    } else if (how == 1) {
        MPI_Win_allocate(4096, sizeof(int), MPI_INFO_NULL, c->handle, &base, &window);
    } else {
        MPI_Win_allocate_shared(4096, sizeof(int), MPI_INFO_NULL, c->handle, &base, &window);
    }
    for (int i = 0; i < epochs; i++) {
        int by = draw(w, 1 << 20) % size;
        switch (draw(w, 4)) {
        case 0:
            MPI_Win_fence(0, window);
            access_window(w, window, size, 0, 0);
            MPI_Win_fence(0, window);
            break;
        case 1:
            MPI_Win_lock(choose(w, 2) ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, by, 0, window);
            access_window(w, window, size, 1, by);
            MPI_Win_unlock(by, window);
            MPI_Barrier(c->handle);
            break;
        case 2:
            MPI_Win_lock_all(0, window);
            access_window(w, window, size, 1, by);
            MPI_Win_flush_all(window);
            MPI_Win_unlock_all(window);
            MPI_Barrier(c->handle);
            break;
        default: {
            MPI_Group all, one;
            int other = (rank + 1) % size, before = (rank + size - 1) % size;
            MPI_Comm_group(c->handle, &all);
            MPI_Group_incl(all, 1, &before, &one);
            MPI_Win_post(one, 0, window);
            MPI_Group_free(&one);
            MPI_Group_incl(all, 1, &other, &one);
            MPI_Win_start(one, 0, window);
            MPI_Group_free(&one);
            MPI_Put(w->out, 5, MPI_INT, other, 8, 5, MPI_INT, window);
            MPI_Win_complete(window);
            MPI_Win_wait(window);
            MPI_Group_free(&all);
            break;
        }
        }
    }
    MPI_Win_free(&window);
    if (how == 0)
        MPI_Free_mem(base);
}

/* --- Files -------------------------------------------------------------------------------------------------------------------- */

static void file(struct worker *w, struct communicator *c, int number) {
    int size, others, rank = of_group(c->handle, c->kind, &size, &others), times = 1 + draw(w, 4), count;
    char path[64];
    MPI_File handle;
    MPI_Status status, *told;
    MPI_Request request;
    int lead = rank == 0 ? (int)getpid() : 0;
    MPI_Bcast(&lead, 1, MPI_INT, 0, c->handle);
    snprintf(path, sizeof path, "random-%d-%d-%d", lead, w->number, number);
    MPI_File_open(c->handle, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &handle);
    if (draw(w, 2))
        MPI_File_set_view(handle, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    for (int i = 0; i < times; i++) {
        count = 1 + choose(w, 100);
        told = choose(w, 2) ? &status : MPI_STATUS_IGNORE;
        switch (draw(w, 8)) {
        case 0: MPI_File_write_at(handle, rank * 4096, w->out, count, MPI_INT, told); break;
        case 1: MPI_File_write_at_all(handle, rank * 4096, w->out, count, MPI_INT, told); break;
        case 2: MPI_File_read_at(handle, rank * 64, w->in, count, MPI_INT, told); break;
        case 3: MPI_File_read_at_all(handle, rank * 64, w->in, count, MPI_INT, told); break;
        case 4: MPI_File_write(handle, w->out, count, MPI_DOUBLE, told); break;
        case 5:
            MPI_File_iwrite_at(handle, rank * 4096, w->out, count, MPI_INT, &request);
            MPI_Wait(&request, told);
            break;
        case 6:
            MPI_File_write_all_begin(handle, w->out, count, MPI_INT);
            MPI_File_write_all_end(handle, w->out, told);
            break;
        default: MPI_File_write_shared(handle, w->out, count, MPI_INT, told); break;
        }
    }
    MPI_File_close(&handle);
}

static int is_alone(struct communicator *c) {
    int size;
    MPI_Comm_size(c->handle, &size);
    return size == 1;
}

/* --- Steps -------------------------------------------------------------------------------------------------------------------- */

static void *work(void *given) {
    struct worker *w = given;
    for (int i = 0; i < w->steps; i++) {
        w->step.state = next(&w->shared);
        int used = 0, wanted;
        for (int j = 0; j < COMMUNICATORS; j++)
            used += w->pool[j].is_used;
        wanted = draw(w, used);
        struct communicator *c = w->pool;
        for (; !c->is_used || wanted-- > 0; c++)
            ;
        int what = draw(w, 30);
        /* Two threads that make communicators, windows or files at once are more than Open MPI 4.1 bears. */
        int is_first = w->number == 0;
        if (what < 5 && used < COMMUNICATORS && is_first) {
            make(w, c);
            continue;
        }
        if (what < 8 && c != w->pool) {
            if (c->handle != MPI_COMM_NULL)
                MPI_Comm_free(&c->handle);
            c->is_used = 0;
            continue;
        }
        if (c->handle == MPI_COMM_NULL)
            continue;
        if (what < 17) {
            int is_wild = what < 12 ? receives_first(w, c) : what < 15 ? sends_first(w, c) : persistent(w, c);
            /* Nobody's next message comes to a receive that leaves its sender open. */
            if (is_wild)
                MPI_Barrier(c->handle);
        }
        else if (what < 19)
            shift(w, c);
        else if (what < 20)
            odd(w, c);
        else if (what < 26)
            collective(w, c);
        else if (what < 28 && (c->kind == CART || c->kind == GRAPH))
            neighbourhood(w, c);
        else if (what == 28 && c->kind != INTER && is_first && !is_alone(c))
            window(w, c);
        else if (what == 29 && c->kind != INTER && is_first)
            file(w, c, i);
    }
    for (struct communicator *c = w->pool + 1; c < w->pool + COMMUNICATORS; c++)
        if (c->is_used && c->handle != MPI_COMM_NULL)
            MPI_Comm_free(&c->handle);
    return NULL;
}

int main(int count, char **arguments) {
    uint64_t seed = count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
    int steps = count > 2 ? atoi(arguments[2]) : 100, threads = count > 3 ? atoi(arguments[3]) : 1, rank, size, provided;
    MPI_Init_thread(&count, &arguments, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > MOST_RANKS || (threads > 1 && provided < MPI_THREAD_MULTIPLE))
        MPI_Abort(MPI_COMM_WORLD, 2);
    /* MPICH takes errors of sends for errors of the world. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &half_keyval, NULL);
    void *bsend = malloc(BUFFERED);
    MPI_Buffer_attach(bsend, BUFFERED);
    pthread_t others[16];
    struct worker workers[16];
    for (int i = 0; i < threads && i < 16; i++) {
        struct worker *w = &workers[i];
        memset(w, 0, sizeof *w);
        w->steps = steps, w->number = i;
        w->shared.state = seed * 1000 + (uint64_t)i;
        w->own.state = seed * 1000003 + (uint64_t)i * 101 + (uint64_t)rank;
        w->out = calloc(1, ARENA), w->in = calloc(1, ARENA);
        w->pool[0] = (struct communicator){MPI_COMM_WORLD, INTRA, 1};
        if (threads > 1)
            MPI_Comm_dup(MPI_COMM_WORLD, &w->pool[0].handle);
    }
    for (int i = 1; i < threads; i++)
        pthread_create(&others[i], NULL, work, &workers[i]);
    work(&workers[0]);
    for (int i = 1; i < threads; i++)
        pthread_join(others[i], NULL);
    void *detached;
    int detached_size;
    MPI_Buffer_detach(&detached, &detached_size);
    if (threads > 1)
        for (int i = 0; i < threads; i++)
            MPI_Comm_free(&workers[i].pool[0].handle);
    MPI_Comm_free_keyval(&half_keyval);
    MPI_Finalize();
    return 0;
}
