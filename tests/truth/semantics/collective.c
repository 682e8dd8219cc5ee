/* How much a collective moves in the calling process: what its send buffer holds and what its receive buffer takes, as the
 * standard defines them for each function (MPI-4.0, chapters 6 and 8). */
#include "call.h"
#include "scope.h"

static int in_place(const struct side *side) {
    return side->buffer == MPI_IN_PLACE;
}

/* What the arguments of a rooted collective mean here. In an inter-communicator, the root's group has the root and idle
 * processes; all of the other group are leaves. */
enum part { ROOT, LEAF, IDLE };

static enum part part(const struct call *call) {
    if (!call->scope->inter)
        return call->root == call->scope->rank ? ROOT : LEAF;
    return call->root == MPI_ROOT ? ROOT : call->root == MPI_PROC_NULL ? IDLE : LEAF;
}

static int is_absent(const struct scope *scope, int neighbour) {
    return neighbour < 64 && scope->absent >> neighbour & 1;
}

static int has_neighbours(const struct scope *scope) {
    for (int i = 0; i < scope->outdegree; i++)
        if (!is_absent(scope, i))
            return 1;
    return 0;
}

static uint64_t neighbours_bytes(const struct side *side, const struct scope *scope, int degree) {
    uint64_t sum = 0;
    for (int i = 0; i < degree; i++)
        if (!is_absent(scope, i))
            sum += truth_block_bytes(side, i);
    return sum;
}

void truth_collective(const struct call *call, uint64_t *sent, uint64_t *received) {
    const struct scope *scope = call->scope;
    const struct side *send = &call->send, *receive = &call->receive;
    /* As many as data goes to and comes from: the other group of an inter-communicator. */
    const int others = scope->inter ? scope->remote_size : scope->size;
    enum part here = part(call);
    *sent = *received = 0;
    switch (call->rule) {
    case RULE_BCAST:
        if (here == ROOT)
            *sent = truth_side_bytes(send, 1);
        else if (here == LEAF)
            *received = truth_side_bytes(send, 1);
        break;
    case RULE_GATHER:
        if (here == LEAF || (here == ROOT && !scope->inter && !in_place(send)))
            *sent = truth_side_bytes(send, 1);
        if (here == ROOT)
            *received = truth_side_bytes(receive, others);
        break;
    case RULE_SCATTER:
        if (here == ROOT)
            *sent = truth_side_bytes(send, others);
        if (here == LEAF || (here == ROOT && !scope->inter && !in_place(receive)))
            *received = truth_side_bytes(receive, 1);
        break;
    case RULE_ALLGATHER:
        if (!in_place(send))
            *sent = truth_side_bytes(send, 1);
        *received = truth_side_bytes(receive, others);
        break;
    case RULE_ALLTOALL:
        *received = truth_side_bytes(receive, others);
        *sent = in_place(send) ? *received : truth_side_bytes(send, others);
        break;
    /* Reductions take what they send from the receive buffer if they are in place. */
    case RULE_REDUCE:
        if (here == LEAF || (here == ROOT && !scope->inter))
            *sent = truth_side_bytes(receive, 1);
        if (here == ROOT)
            *received = truth_side_bytes(receive, 1);
        break;
    case RULE_ALLREDUCE:
        *sent = *received = truth_side_bytes(receive, 1);
        break;
    case RULE_EXSCAN:
        *sent = truth_side_bytes(receive, 1);
        *received = scope->rank == 0 ? 0 : *sent;
        break;
    case RULE_REDUCE_SCATTER:
    case RULE_REDUCE_SCATTER_BLOCK: /* the result is spread over the own group in any case */
        *sent = truth_side_bytes(receive, scope->size);
        *received = truth_block_bytes(receive, scope->rank);
        break;
    case RULE_NEIGHBOR_ALLGATHER:
        *sent = has_neighbours(scope) ? truth_side_bytes(send, 1) : 0;
        *received = neighbours_bytes(receive, scope, scope->indegree);
        break;
    case RULE_NEIGHBOR_ALLTOALL:
        *sent = neighbours_bytes(send, scope, scope->outdegree);
        *received = neighbours_bytes(receive, scope, scope->indegree);
        break;
    default: /* a barrier */
        break;
    }
}
