/* Communicators, groups, intercommunicators, attributes, error handlers, info objects. */
#include "groups.h"

static int copied, deleted;

static int copy(MPI_Comm old, int keyval, void *state, void *value, void *new_value, int *flag) {
    (void)old, (void)keyval, (void)state;
    *(void **)new_value = value;
    *flag = 1;
    copied++;
    return MPI_SUCCESS;
}

static int erase(MPI_Comm communicator, int keyval, void *value, void *state) {
    (void)communicator, (void)keyval, (void)value, (void)state;
    deleted++;
    return MPI_SUCCESS;
}

static void intracommunicators(void) {
    MPI_Comm duplicate, half, node, two, group_made;
    MPI_Group world, low, high, both;
    MPI_Request request;
    int members[2] = {0, 1}, number, result, length, ranks_in_half[2], zero_one[2] = {0, 1};
    char name[MPI_MAX_OBJECT_NAME];
    CALL(MPI_Comm_dup)(MPI_COMM_WORLD, &duplicate);
    CALL(MPI_Comm_compare)(MPI_COMM_WORLD, duplicate, &result);
    EXPECT(result == MPI_CONGRUENT);
    CALL(MPI_Comm_set_name)(duplicate, "duplicate");
    CALL(MPI_Comm_get_name)(duplicate, name, &length);
    EXPECT(strcmp(name, "duplicate") == 0);
    CALL(MPI_Comm_free)(&duplicate);
    CALL(MPI_Comm_idup)(MPI_COMM_WORLD, &duplicate, &request);
    CALL(MPI_Wait)(&request, MPI_STATUS_IGNORE);
    CALL(MPI_Comm_free)(&duplicate);

    CALL(MPI_Comm_split)(MPI_COMM_WORLD, rank / 2, rank, &half);
    CALL(MPI_Allreduce)(&rank, &number, 1, MPI_INT, MPI_SUM, half);
    EXPECT(number == (rank < 2 ? 1 : 5));
    CALL(MPI_Comm_free)(&half);
    CALL(MPI_Comm_split_type)(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    CALL(MPI_Comm_size)(node, &number);
    EXPECT(number == 4);
    CALL(MPI_Comm_free)(&node);

    CALL(MPI_Comm_group)(MPI_COMM_WORLD, &world);
    CALL(MPI_Group_incl)(world, 2, members, &low);
    CALL(MPI_Group_excl)(world, 2, members, &high);
    CALL(MPI_Group_size)(low, &number);
    EXPECT(number == 2);
    CALL(MPI_Group_union)(low, high, &both);
    CALL(MPI_Group_compare)(world, both, &result);
    EXPECT(result == MPI_IDENT);
    CALL(MPI_Group_rank)(world, &number);
    EXPECT(number == rank);
    CALL(MPI_Group_translate_ranks)(high, 2, zero_one, world, ranks_in_half);
    EXPECT(ranks_in_half[0] == 2 && ranks_in_half[1] == 3);
    CALL(MPI_Comm_create)(MPI_COMM_WORLD, low, &two);
    EXPECT((two == MPI_COMM_NULL) == (rank >= 2));
    if (rank < 2) {
        CALL(MPI_Comm_create_group)(MPI_COMM_WORLD, low, 5, &group_made);
        CALL(MPI_Barrier)(group_made);
        CALL(MPI_Comm_free)(&group_made);
        CALL(MPI_Comm_free)(&two);
    }
    CALL(MPI_Group_free)(&both);
    CALL(MPI_Group_free)(&high);
    CALL(MPI_Group_free)(&low);
    CALL(MPI_Group_free)(&world);
}

static void intercommunicators(void) {
    MPI_Comm half, other, merged;
    int remote, flag, number, value = rank, got = -1;
    CALL(MPI_Comm_split)(MPI_COMM_WORLD, rank % 2, rank, &half);
    CALL(MPI_Intercomm_create)(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 6, &other);
    CALL(MPI_Comm_test_inter)(other, &flag);
    CALL(MPI_Comm_remote_size)(other, &remote);
    EXPECT(flag && remote == 2);
    /* My twin in the other half: world rank xor 1. */
    CALL(MPI_Sendrecv)(&value, 1, MPI_INT, rank / 2, 7, &got, 1, MPI_INT, rank / 2, 7, other, MPI_STATUS_IGNORE);
    EXPECT(got == (rank ^ 1));
    CALL(MPI_Allreduce)(&rank, &number, 1, MPI_INT, MPI_SUM, other);
    EXPECT(number == (rank % 2 == 0 ? 4 : 2));
    CALL(MPI_Intercomm_merge)(other, rank % 2, &merged);
    CALL(MPI_Comm_size)(merged, &number);
    EXPECT(number == 4);
    CALL(MPI_Comm_free)(&merged);
    CALL(MPI_Comm_free)(&other);
    CALL(MPI_Comm_free)(&half);
}

static void attributes(void) {
    MPI_Comm one, two;
    int keyval, flag, *value, *bound;
    CALL(MPI_Comm_create_keyval)(copy, erase, &keyval, NULL);
    CALL(MPI_Comm_dup)(MPI_COMM_SELF, &one);
    CALL(MPI_Comm_set_attr)(one, keyval, &rank);
    CALL(MPI_Comm_dup)(one, &two);
    CALL(MPI_Comm_get_attr)(two, keyval, &value, &flag);
    EXPECT(flag && value == &rank && copied == 1);
    CALL(MPI_Comm_delete_attr)(two, keyval);
    CALL(MPI_Comm_free)(&two);
    CALL(MPI_Comm_free)(&one);
    EXPECT(deleted == 2);
    CALL(MPI_Comm_free_keyval)(&keyval);
    CALL(MPI_Comm_get_attr)(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
    EXPECT(flag && *bound >= 32767);
}

static void errors_and_info(void) {
    MPI_Info info;
    MPI_Errhandler old;
    int flag, class, length, code;
    char value[32], text[MPI_MAX_ERROR_STRING];
    CALL(MPI_Info_create)(&info);
    CALL(MPI_Info_set)(info, "key", "value");
    CALL(MPI_Info_get)(info, "key", 31, value, &flag);
    EXPECT(flag && strcmp(value, "value") == 0);
    CALL(MPI_Info_free)(&info);

    CALL(MPI_Comm_get_errhandler)(MPI_COMM_WORLD, &old);
    CALL(MPI_Comm_set_errhandler)(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code = CALL(MPI_Send)(&rank, 1, MPI_INT, 1000000, 0, MPI_COMM_WORLD);
    CALL(MPI_Error_class)(code, &class);
    EXPECT(class == MPI_ERR_RANK);
    CALL(MPI_Error_string)(code, text, &length);
    CALL(MPI_Comm_set_errhandler)(MPI_COMM_WORLD, old);
    CALL(MPI_Errhandler_free)(&old);
}

void communicators(void) {
    intracommunicators();
    intercommunicators();
    attributes();
    errors_and_info();
}
