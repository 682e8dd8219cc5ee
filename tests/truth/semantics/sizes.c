/* How many bytes: of datatypes and statuses, as MPI itself says. */
#include "ask.h"
#include "call.h"

#include <stddef.h>

/* A datatype of no elements need not exist. */
static uint64_t bytes(MPI_Count count, MPI_Datatype type) {
    MPI_Count size;
    if (count <= 0)
        return 0;
    ASK(Type_size_x, type, &size);
    return (uint64_t)count * (uint64_t)size;
}

static MPI_Count count_of(const struct side *side, int block) {
    if (side->counts != NULL)
        return side->counts[block];
    return side->large_counts != NULL ? side->large_counts[block] : side->count;
}

uint64_t truth_block_bytes(const struct side *side, int block) {
    return bytes(count_of(side, block), side->types != NULL ? side->types[block] : side->type);
}

uint64_t truth_side_bytes(const struct side *side, int blocks) {
    if (side->types == NULL) {
        MPI_Count count = 0;
        for (int i = 0; i < blocks; i++)
            count += count_of(side, i);
        return bytes(count, side->type);
    }
    uint64_t sum = 0;
    for (int i = 0; i < blocks; i++)
        sum += truth_block_bytes(side, i);
    return sum;
}

uint64_t truth_status_bytes(const MPI_Status *status) {
    MPI_Count count = 0;
    ASK(Get_elements_x, status, MPI_BYTE, &count);
    return count > 0 ? (uint64_t)count : 0;
}
