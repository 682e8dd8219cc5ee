/* ASK(Comm_size, comm, &size) asks MPI and counts the question: a tool that observes the process sees these calls, too. */
#ifndef MPIPROBE_TRUTH_ASK_H
#define MPIPROBE_TRUTH_ASK_H

#include <mpi.h>

#define QUESTIONS(question)                                                                                            \
    question(Comm_create_keyval) question(Comm_get_attr) question(Comm_get_name)                \
    question(Comm_group) question(Comm_rank) question(Comm_remote_group) question(Comm_remote_size)                    \
    question(Comm_set_attr) question(Comm_size) question(Comm_test_inter) question(Cartdim_get)                        \
    question(Dist_graph_neighbors_count) question(File_get_group) question(Get_elements_x)                             \
    question(Get_library_version) question(Graph_neighbors_count) question(Group_free) question(Group_rank) question(Group_size)                     \
    question(Group_translate_ranks) question(Initialized) question(Request_get_status) question(Test_cancelled)        \
    question(Cart_shift)     question(Topo_test) question(Type_size_x) question(Win_create_keyval) question(Win_get_attr)                       \
    question(Win_get_group) question(Win_get_name) question(Win_set_attr) SESSION_QUESTIONS(question)

#if MPI_VERSION >= 4
#define SESSION_QUESTIONS(question) question(Group_from_session_pset)
#else
#define SESSION_QUESTIONS(question)
#endif

enum question {
#define QUESTION(name) ASKED_##name,
    QUESTIONS(QUESTION)
#undef QUESTION
};

/* A question that fails ends the process: the truth must not guess. */
#define ASK(name, ...) truth_answered(#name, (truth_asked(ASKED_##name), PMPI_##name(__VA_ARGS__)))

void truth_asked(enum question question);
void truth_answered(const char *question, int result);

#endif
