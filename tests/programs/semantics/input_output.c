/* Files: explicit offsets, individual and shared pointers, collective, split, nonblocking; reads that hit the file's end. */
#include "semantics.h"

static MPI_File file;
static char path[4096];
static int out[16], in[16];

static void make(void) {
    const char *directory = getenv("MPIPROBE_TRUTH_DIR");
    int job = (int)getpid();
    MPI_Bcast(&job, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(path, sizeof path, "%s/semantics-%d", directory != NULL ? directory : "/tmp", job);
    EXPECT(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                         &file) == MPI_SUCCESS);
}

static MPI_Offset mine(void) {
    return (MPI_Offset)(rank * sizeof out);
}

static void explicit_offsets(void) {
    MPI_Status status;
    MPI_Request request;
    fill(out, 16, rank, 1);
    MPI_File_write_at(file, mine(), out, 16, MPI_INT, &status);
    MPI_File_read_at(file, mine(), in, 16, MPI_INT, MPI_STATUS_IGNORE);
    check(in, 16, rank, 1);
    MPI_File_write_at_all(file, mine(), out, 10, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_at_all(file, mine(), in, 10, MPI_INT, &status);
    MPI_File_write_at_all_begin(file, mine(), out, 9, MPI_INT);
    MPI_File_write_at_all_end(file, out, &status);
    MPI_File_read_at_all_begin(file, mine(), in, 9, MPI_INT);
    MPI_File_read_at_all_end(file, in, MPI_STATUS_IGNORE);
    MPI_File_iwrite_at(file, mine(), out, 8, MPI_INT, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_iread_at(file, mine(), in, 8, MPI_INT, &request);
    MPI_Wait(&request, &status);
    MPI_File_iwrite_at_all(file, mine(), out, 7, MPI_INT, &request);
    MPI_Wait(&request, &status);
    MPI_File_iread_at_all(file, mine(), in, 7, MPI_INT, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(in, 7, rank, 1);
}

/* Four times 64 bytes are written. Not by MPI_File_iread_at, which Open MPI 4.1.4 never completes then. */
static void beyond_the_end(void) {
    MPI_Status status;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at(file, 4 * sizeof out - 12, in, 16, MPI_INT, &status); /* 12 bytes are left */
    MPI_File_read_at(file, 4 * sizeof out, in, 16, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_write_at(file, mine(), out, 0, MPI_INT, &status);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void rewind_to_start(void) {
    MPI_File_seek(file, 0, MPI_SEEK_SET);
}

static void individual_pointers(void) {
    MPI_Status status;
    MPI_Request request;
    MPI_Datatype sparse;
    MPI_Type_vector(4, 1, 2, MPI_INT, &sparse);
    MPI_Type_commit(&sparse);
    MPI_File_set_view(file, mine(), MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_write(file, out, 6, MPI_INT, &status);
    rewind_to_start();
    MPI_File_read(file, in, 6, MPI_INT, &status);
    rewind_to_start();
    MPI_File_write_all(file, out, 2, sparse, &status); /* 32 bytes */
    rewind_to_start();
    MPI_File_read_all(file, in, 5, MPI_INT, &status);
    rewind_to_start();
    MPI_File_write_all_begin(file, out, 4, MPI_INT);
    MPI_File_write_all_end(file, out, &status);
    rewind_to_start();
    MPI_File_read_all_begin(file, in, 4, MPI_INT);
    MPI_File_read_all_end(file, in, &status);
    rewind_to_start();
    MPI_File_iwrite(file, out, 3, MPI_INT, &request);
    MPI_Wait(&request, &status);
    rewind_to_start();
    MPI_File_iread(file, in, 3, MPI_INT, &request);
    MPI_Wait(&request, &status);
    rewind_to_start();
    MPI_File_iwrite_all(file, out, 2, MPI_INT, &request);
    MPI_Wait(&request, &status);
    rewind_to_start();
    MPI_File_iread_all(file, in, 2, MPI_INT, &request);
    MPI_Wait(&request, &status);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_Type_free(&sparse);
}

static void shared_pointers(void) {
    MPI_Status status;
    MPI_Request request;
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_write_ordered(file, out, 4, MPI_INT, &status);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_read_ordered(file, in, 4, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_write_ordered_begin(file, out, 3, MPI_INT);
    MPI_File_write_ordered_end(file, out, &status);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_read_ordered_begin(file, in, 3, MPI_INT);
    MPI_File_read_ordered_end(file, in, &status);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_write_shared(file, out, 2, MPI_INT, &status);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_read_shared(file, in, 2, MPI_INT, &status);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_iwrite_shared(file, out, 1, MPI_INT, &request);
    MPI_Wait(&request, &status);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_iread_shared(file, in, 1, MPI_INT, &request);
    MPI_Wait(&request, &status);
}

/* Each process alone. */
static void alone(void) {
    char own[4200];
    MPI_File single;
    snprintf(own, sizeof own, "%s-%d", path, rank);
    MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &single);
    MPI_File_write(single, out, rank + 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&single);
}

static void use(void) {
    explicit_offsets();
    beyond_the_end();
    individual_pointers();
    shared_pointers();
    alone();
}

static void release(void) {
    MPI_File_close(&file);
}

const struct section input_output = {"input-output", make, use, release};
