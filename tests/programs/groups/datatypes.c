/* Derived datatypes, packing. */
#include "groups.h"

static void expect_size(MPI_Datatype type, int wanted) {
    int bytes;
    CALL(MPI_Type_size)(type, &bytes);
    EXPECT(bytes == wanted);
}

static void drop(MPI_Datatype *type, int bytes) {
    CALL(MPI_Type_commit)(type);
    expect_size(*type, bytes);
    CALL(MPI_Type_free)(type);
}

static void constructors(void) {
    int lengths[2] = {1, 2}, places[2] = {0, 2}, full[2] = {4, 4}, part[2] = {2, 2}, start[2] = {1, 1};
    int distributions[1] = {MPI_DISTRIBUTE_BLOCK}, arguments[1] = {MPI_DISTRIBUTE_DFLT_DARG}, grid[1] = {4}, sixteen[1] = {16};
    MPI_Aint byte_places[2] = {0, 8}, lower, extent;
    MPI_Datatype type, types[2] = {MPI_INT, MPI_DOUBLE}, resized;
    CALL(MPI_Type_contiguous)(3, MPI_INT, &type);
    drop(&type, 12);
    CALL(MPI_Type_vector)(2, 1, 3, MPI_INT, &type);
    drop(&type, 8);
    CALL(MPI_Type_create_hvector)(2, 1, 16, MPI_INT, &type);
    drop(&type, 8);
    CALL(MPI_Type_indexed)(2, lengths, places, MPI_INT, &type);
    drop(&type, 12);
    CALL(MPI_Type_create_hindexed)(2, lengths, byte_places, MPI_INT, &type);
    drop(&type, 12);
    CALL(MPI_Type_create_indexed_block)(2, 2, places, MPI_INT, &type);
    drop(&type, 16);
    CALL(MPI_Type_create_struct)(2, lengths, byte_places, types, &type);
    drop(&type, 20);
    CALL(MPI_Type_create_subarray)(2, full, part, start, MPI_ORDER_C, MPI_INT, &type);
    drop(&type, 16);
    CALL(MPI_Type_create_darray)(4, rank, 1, sixteen, distributions, arguments, grid, MPI_ORDER_C, MPI_INT, &type);
    drop(&type, 16);
    CALL(MPI_Type_dup)(MPI_INT, &type);
    CALL(MPI_Type_create_resized)(type, 0, 32, &resized);
    CALL(MPI_Type_get_extent)(resized, &lower, &extent);
    EXPECT(lower == 0 && extent == 32);
    drop(&resized, 4);
    drop(&type, 4);
}

static void packing(void) {
    char buffer[100];
    int bytes, position = 0, in[2], out[2] = {rank, -rank};
    MPI_Aint address;
    CALL(MPI_Get_address)(buffer, &address);
    EXPECT(address != 0);
    CALL(MPI_Pack_size)(2, MPI_INT, MPI_COMM_WORLD, &bytes);
    EXPECT(bytes >= 8 && bytes <= 100);
    CALL(MPI_Pack)(out, 2, MPI_INT, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
    bytes = position;
    position = 0;
    CALL(MPI_Unpack)(buffer, bytes, &position, in, 2, MPI_INT, MPI_COMM_WORLD);
    EXPECT(in[0] == rank && in[1] == -rank);
}

void datatypes(void) {
    constructors();
    packing();
}
