/* CALL(MPI_Send)(buffer, …) calls the function and counts the call: the program's own record, which needs no tool at all.
 * save_counts(rank) writes it where the test finds it (see Job::own_counts). */
#ifndef MPIPROBE_COUNTED_H
#define MPIPROBE_COUNTED_H

#define CALL(function) (count_call(#function), function)

void count_call(const char *name);
void save_counts(int rank);

#endif
