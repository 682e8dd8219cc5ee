/* semantics [SECTION…]: every kind of call that moves data, in every form that is easily misread from outside. Four ranks; all
 * sections unless some are named.
 *
 * Which bytes go where does not depend on timing, so two runs move the same. Gates: 1 after MPI_Init,
 * 2 when all communicators, types, windows and persistent requests exist that live long, 3 before they are freed. Exit status 1
 * on wrong data. */
#include "semantics.h"

int rank, right, left, partner;

static const struct section *const sections[] = {
    &point_to_point, &collectives,  &datatypes,     &requests,     &communicators, &nonblocking_collectives,
    &neighbourhoods, &one_sided,    &input_output, &large,        &repeated,     &errors,        &inner_calls,
    &many,
};
enum { SECTIONS = sizeof sections / sizeof *sections };

void expect(int holds, const char *condition, const char *file, int line) {
    if (holds)
        return;
    fprintf(stderr, "semantics: rank %d: %s:%d: not true: %s\n", rank, file, line, condition);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

void fill(int *words, int count, int sender, int seed) {
    for (int i = 0; i < count; i++)
        words[i] = sender * 100000 + seed * 1000 + i;
}

void check(const int *words, int count, int sender, int seed) {
    for (int i = 0; i < count; i++)
        EXPECT(words[i] == sender * 100000 + seed * 1000 + i);
}

static int is_wanted(const struct section *section, int names, char **wanted) {
    for (int i = 0; i < names; i++)
        if (strcmp(wanted[i], section->name) == 0)
            return 1;
    return names == 0;
}

int main(int argc, char **argv) {
    int size, known = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT(size == 4);
    right = (rank + 1) % 4;
    left = (rank + 3) % 4;
    partner = rank ^ 1;
    for (int i = 0; i < SECTIONS; i++)
        known += is_wanted(sections[i], argc - 1, argv + 1);
    EXPECT(known > 0 && (argc == 1 || known == argc - 1));

    gate(1);
    for (int i = 0; i < SECTIONS; i++)
        if (is_wanted(sections[i], argc - 1, argv + 1) && sections[i]->make != NULL)
            sections[i]->make();
    gate(2);
    for (int i = 0; i < SECTIONS; i++)
        if (is_wanted(sections[i], argc - 1, argv + 1))
            sections[i]->use();
    gate(3);
    for (int i = 0; i < SECTIONS; i++)
        if (is_wanted(sections[i], argc - 1, argv + 1) && sections[i]->release != NULL)
            sections[i]->release();
    MPI_Finalize();
    if (rank == 0)
        printf("semantics: all data correct\n");
    return 0;
}
