/* MPI-IO: explicit offsets, individual and shared file pointers; independent and collective; blocking, split, nonblocking. */
#include "groups.h"

static MPI_File file;
static MPI_Status status;
static int out[4], in[4];

static void prepare(int seed) {
    for (int i = 0; i < 4; i++) {
        out[i] = rank * 100 + seed * 10 + i;
        in[i] = -1;
    }
}

static void verify(void) {
    EXPECT(memcmp(in, out, sizeof in) == 0);
}

static void explicit_offsets(void) {
    MPI_Offset here = (MPI_Offset)(rank * sizeof out);
    MPI_Request request;
    prepare(1);
    CALL(MPI_File_write_at)(file, here, out, 4, MPI_INT, &status);
    CALL(MPI_File_read_at)(file, here, in, 4, MPI_INT, &status);
    verify();
    prepare(2);
    CALL(MPI_File_write_at_all)(file, here, out, 4, MPI_INT, &status);
    CALL(MPI_File_read_at_all)(file, here, in, 4, MPI_INT, &status);
    verify();
    prepare(3);
    CALL(MPI_File_write_at_all_begin)(file, here, out, 4, MPI_INT);
    CALL(MPI_File_write_at_all_end)(file, out, &status);
    CALL(MPI_File_read_at_all_begin)(file, here, in, 4, MPI_INT);
    CALL(MPI_File_read_at_all_end)(file, in, &status);
    verify();
    prepare(4);
    CALL(MPI_File_iwrite_at)(file, here, out, 4, MPI_INT, &request);
    CALL(MPI_Wait)(&request, &status);
    CALL(MPI_File_iread_at)(file, here, in, 4, MPI_INT, &request);
    CALL(MPI_Wait)(&request, &status);
    verify();
    prepare(5);
    CALL(MPI_File_iwrite_at_all)(file, here, out, 4, MPI_INT, &request);
    CALL(MPI_Wait)(&request, &status);
    CALL(MPI_File_iread_at_all)(file, here, in, 4, MPI_INT, &request);
    CALL(MPI_Wait)(&request, &status);
    verify();
}

static void rewind_to_start(void) {
    CALL(MPI_File_seek)(file, 0, MPI_SEEK_SET);
}

static void individual_pointers(void) {
    MPI_Request request;
    MPI_Offset position, view;
    MPI_Datatype elementary, filetype;
    char representation[MPI_MAX_DATAREP_STRING];
    CALL(MPI_File_set_view)(file, (MPI_Offset)(rank * sizeof out), MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    CALL(MPI_File_get_view)(file, &view, &elementary, &filetype, representation);
    EXPECT(view == (MPI_Offset)(rank * sizeof out));
    prepare(1);
    CALL(MPI_File_write)(file, out, 4, MPI_INT, &status);
    CALL(MPI_File_get_position)(file, &position);
    EXPECT(position == 4);
    rewind_to_start();
    CALL(MPI_File_read)(file, in, 4, MPI_INT, &status);
    verify();
    prepare(2);
    rewind_to_start();
    CALL(MPI_File_write_all)(file, out, 4, MPI_INT, &status);
    rewind_to_start();
    CALL(MPI_File_read_all)(file, in, 4, MPI_INT, &status);
    verify();
    prepare(3);
    rewind_to_start();
    CALL(MPI_File_write_all_begin)(file, out, 4, MPI_INT);
    CALL(MPI_File_write_all_end)(file, out, &status);
    rewind_to_start();
    CALL(MPI_File_read_all_begin)(file, in, 4, MPI_INT);
    CALL(MPI_File_read_all_end)(file, in, &status);
    verify();
    prepare(4);
    rewind_to_start();
    CALL(MPI_File_iwrite)(file, out, 4, MPI_INT, &request);
    CALL(MPI_Wait)(&request, &status);
    rewind_to_start();
    CALL(MPI_File_iread)(file, in, 4, MPI_INT, &request);
    CALL(MPI_Wait)(&request, &status);
    verify();
    CALL(MPI_File_set_view)(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
}

static void shared_pointers(void) {
    prepare(6);
    CALL(MPI_File_seek_shared)(file, 0, MPI_SEEK_SET);
    CALL(MPI_File_write_ordered)(file, out, 4, MPI_INT, &status);
    CALL(MPI_File_seek_shared)(file, 0, MPI_SEEK_SET);
    CALL(MPI_File_read_ordered)(file, in, 4, MPI_INT, &status);
    verify();
    CALL(MPI_File_seek_shared)(file, 0, MPI_SEEK_SET);
    CALL(MPI_File_write_shared)(file, out, 4, MPI_INT, &status);
    CALL(MPI_Barrier)(MPI_COMM_WORLD);
    CALL(MPI_File_seek_shared)(file, 0, MPI_SEEK_SET);
    CALL(MPI_File_read_shared)(file, in, 4, MPI_INT, &status);
    /* In whatever order: four words of one rank. */
    EXPECT(in[3] == in[0] + 3 && in[0] % 100 == 60);
}

void input_output(void) {
    const char *directory = getenv("MPIPROBE_TRUTH_DIR");
    char path[4096];
    MPI_Offset bytes;
    int mode;
    snprintf(path, sizeof path, "%s/groups.data", directory ? directory : "/tmp");
    CALL(MPI_File_open)(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    CALL(MPI_File_set_atomicity)(file, 0);
    CALL(MPI_File_set_size)(file, 4 * (MPI_Offset)sizeof out);
    CALL(MPI_File_get_size)(file, &bytes);
    CALL(MPI_File_get_amode)(file, &mode);
    EXPECT(bytes == 4 * (MPI_Offset)sizeof out && mode == (MPI_MODE_CREATE | MPI_MODE_RDWR));
    explicit_offsets();
    individual_pointers();
    shared_pointers();
    CALL(MPI_File_sync)(file);
    CALL(MPI_File_close)(&file);
    if (rank == 0)
        CALL(MPI_File_delete)(path, MPI_INFO_NULL);
}
