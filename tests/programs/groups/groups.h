/* Shared by the files of the program groups. */
#ifndef MPIPROBE_GROUPS_H
#define MPIPROBE_GROUPS_H

#include "../counted.h"
#include "../gate.h"

#include <mpi.h>
#include <string.h>

extern int rank, size, right, left;

/* Ends the job with status 1 unless the condition holds. */
#define EXPECT(condition) expect(condition, #condition, __FILE__, __LINE__)
void expect(int holds, const char *condition, const char *file, int line);

void point_to_point(void);
void completion(void);
void collectives(void);
void nonblocking_collectives(void);
void neighbourhoods(void);
void one_sided(void);
void input_output(void);
void communicators(void);
void datatypes(void);

#endif
