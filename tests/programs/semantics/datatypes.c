/* Derived datatypes of all constructors, made before and between messages, freed while in use, one for each message. */
#include "semantics.h"

enum { TYPES = 13 };

static MPI_Datatype long_lived[TYPES];
static char out[4096], in[4096];

/* Each with another size, 4 bytes to 80. */
static void make_all(MPI_Datatype *types) {
    int lengths[2] = {1, 3}, steps[2] = {0, 5}, sizes[2] = {4, 6}, part[2] = {2, 3}, start[2] = {1, 1};
    MPI_Aint bytes[2] = {0, 32}, apart[2] = {0, 8};
    MPI_Datatype mixed[2] = {MPI_DOUBLE, MPI_SHORT};
    int distribution[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE};
    int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, grid[2] = {4, 1}, whole[2] = {8, 5};
    MPI_Type_contiguous(3, MPI_INT, &types[0]);                                /* 12 */
    MPI_Type_vector(3, 2, 4, MPI_INT, &types[1]);                              /* 24 */
    MPI_Type_create_hvector(4, 1, 24, MPI_DOUBLE, &types[2]);                  /* 32 */
    MPI_Type_indexed(2, lengths, steps, MPI_INT, &types[3]);                   /* 16 */
    MPI_Type_create_hindexed(2, lengths, bytes, MPI_SHORT, &types[4]);         /* 8 */
    MPI_Type_create_indexed_block(2, 5, steps, MPI_CHAR, &types[5]);           /* 10 */
    MPI_Type_create_hindexed_block(2, 3, bytes, MPI_SHORT, &types[6]);         /* 12 */
    MPI_Type_create_struct(2, lengths, apart, mixed, &types[7]);               /* 14 */
    MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_C, MPI_FLOAT, &types[8]); /* 24 */
    MPI_Type_create_darray(4, rank, 2, whole, distribution, arguments, grid, MPI_ORDER_C, MPI_DOUBLE,
                           &types[9]);                                         /* 80: two of eight rows of five */
    MPI_Type_create_resized(MPI_INT, -4, 20, &types[10]);                      /* 4 */
    MPI_Type_dup(types[7], &types[11]);                                        /* 14 */
    MPI_Type_vector(2, 1, 2, types[1], &types[12]);                            /* 48 */
    for (int i = 0; i < TYPES; i++)
        MPI_Type_commit(&types[i]);
}

static void free_all(MPI_Datatype *types) {
    for (int i = 0; i < TYPES; i++)
        MPI_Type_free(&types[i]);
}

/* Two of each to the right, which takes up to three. */
static void send_all(const MPI_Datatype *types) {
    MPI_Status status;
    int count;
    for (int i = 0; i < TYPES; i++) {
        IN_TURNS(MPI_Send(out + 64, 2, types[i], right, i, MPI_COMM_WORLD),
                 MPI_Recv(in + 64, 3, types[i], left, i, MPI_COMM_WORLD, &status));
        MPI_Get_count(&status, types[i], &count);
        EXPECT(count == 2);
    }
}

static void predefined(void) {
    const MPI_Datatype types[] = {
        MPI_CHAR, MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_BYTE, MPI_PACKED, MPI_WCHAR, MPI_SHORT, MPI_UNSIGNED_SHORT,
        MPI_INT, MPI_UNSIGNED, MPI_LONG, MPI_UNSIGNED_LONG, MPI_LONG_LONG, MPI_UNSIGNED_LONG_LONG, MPI_FLOAT, MPI_DOUBLE,
        MPI_LONG_DOUBLE, MPI_C_BOOL, MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_UINT8_T, MPI_UINT16_T,
        MPI_UINT32_T, MPI_UINT64_T, MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX, MPI_AINT,
        MPI_COUNT, MPI_OFFSET, MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_2INT, MPI_SHORT_INT, MPI_LONG_DOUBLE_INT,
    };
    for (unsigned i = 0; i < sizeof types / sizeof *types; i++)
        IN_TURNS(MPI_Send(out, 3, types[i], right, (int)i, MPI_COMM_WORLD),
                 MPI_Recv(in, 3, types[i], left, (int)i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    struct {
        double value;
        int place;
    } mine = {rank % 3, rank}, most;
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD); /* 12 bytes of 16 */
    EXPECT(most.place == 2);
}

/* A new type for each message, of another size, under a handle that was just freed: as ScaLAPACK does. */
static void type_per_message(void) {
    for (int i = 1; i <= 60; i++) {
        MPI_Datatype type;
        if (i % 3 == 0)
            MPI_Type_contiguous(i, MPI_CHAR, &type);
        else
            MPI_Type_vector(i, 1, 2, i % 3 == 1 ? MPI_SHORT : MPI_INT, &type);
        MPI_Type_commit(&type);
        IN_TURNS(MPI_Send(out, 1, type, right, 1, MPI_COMM_WORLD),
                 MPI_Recv(in, 1, type, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MPI_Type_free(&type);
    }
}

static void freed_in_use(void) {
    MPI_Datatype type;
    MPI_Request requests[2];
    MPI_Type_vector(5, 1, 3, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    MPI_Irecv(in, 2, type, left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 2, type, right, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Type_free(&type);
    MPI_Type_contiguous(7, MPI_CHAR, &type); /* perhaps under the same handle */
    MPI_Type_commit(&type);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Type_free(&type);
}

static void packed_and_partial(void) {
    MPI_Datatype pair;
    MPI_Status status;
    int position = 0, words[3] = {1, 2, 3}, count;
    MPI_Pack(words, 3, MPI_INT, out, sizeof out, &position, MPI_COMM_WORLD);
    IN_TURNS(MPI_Send(out, position, MPI_PACKED, right, 1, MPI_COMM_WORLD),
             MPI_Recv(in, sizeof in, MPI_PACKED, left, 1, MPI_COMM_WORLD, &status));
    /* Three ints are one and a half of the type that receives them. */
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    IN_TURNS(MPI_Send(words, 3, MPI_INT, right, 2, MPI_COMM_WORLD),
             MPI_Recv(in, 4, pair, left, 2, MPI_COMM_WORLD, &status));
    MPI_Get_count(&status, pair, &count);
    EXPECT(count == MPI_UNDEFINED);
    MPI_Type_free(&pair);
    /* A type without data, and none of a type. */
    MPI_Type_contiguous(0, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    IN_TURNS(MPI_Send(words, 5, pair, right, 3, MPI_COMM_WORLD),
             MPI_Recv(in, 5, pair, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MPI_Type_free(&pair);
}

static void make(void) {
    make_all(long_lived);
    MPI_Type_set_name(long_lived[8], "block");
}

static void use(void) {
    send_all(long_lived);
    MPI_Datatype again[TYPES];
    make_all(again);
    send_all(again);
    free_all(again);
    predefined();
    type_per_message();
    freed_in_use();
    packed_and_partial();
}

static void release(void) {
    free_all(long_lived);
}

const struct section datatypes = {"datatypes", make, use, release};
