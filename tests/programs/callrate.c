/* callrate SOCKET: calls MPI functions in tight loops, as a benchmark asks for over a Unix socket; one rank or two, each of
 * which connects and is asked for itself.
 *
 * A request is a line "LOOP BATCHES TURNS APART": so many batches of so many turns of the loop, which begin at least so many ns one after the
 * other, all by one clock, so that a late one is made up for. The answer is a line "MINIMUM MEDIAN": the time of the fastest and of the middle
 * batch, in ns. The end of the connection ends the program.
 *
 * "time-stamps" calls nothing: it reads the time stamp counter twice.
 *
 * Between requests it makes no MPI call, so what is attached to it meanwhile sees whole requests. Each loop calls the
 * functions of its name once a turn; MPI_Send+MPI_Recv takes both ranks. Exit status 1 if a call did the wrong thing, 2 on wrong usage. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

enum { MAX_BATCHES = 10000 };

static long long out = 1, in;
static int rank;

static void probe(void) {
    int found;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
}

static void test(void) {
    MPI_Request none = MPI_REQUEST_NULL;
    int done;
    MPI_Test(&none, &done, MPI_STATUS_IGNORE);
}

/* Twelve arguments: six of them on the stack. */
static void sendrecv(void) {
    MPI_Sendrecv(&out, 1, MPI_LONG_LONG, 0, 1, &in, 1, MPI_LONG_LONG, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

static void nonblocking(void) {
    MPI_Request requests[2];
    MPI_Irecv(&in, 1, MPI_LONG_LONG, 0, 2, MPI_COMM_SELF, &requests[0]);
    MPI_Isend(&out, 1, MPI_LONG_LONG, 0, 2, MPI_COMM_SELF, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void allreduce(void) {
    MPI_Allreduce(&out, &in, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_SELF);
}

static void ping_pong(void) {
    if (rank == 0)
        MPI_Send(&out, 1, MPI_LONG_LONG, 1, 3, MPI_COMM_WORLD);
    MPI_Recv(&in, 1, MPI_LONG_LONG, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(&out, 1, MPI_LONG_LONG, 0, 3, MPI_COMM_WORLD);
}

/* Tells a tool to stop looking, which the benchmark does by one turn. */
static void look_away(void) {
    MPI_Pcontrol(0);
}

/* What it takes to know when a call begins and ends, at the least. */
static void time_stamps(void) {
    static volatile unsigned long long between;
    unsigned long long began = __builtin_ia32_rdtsc();
    between = __builtin_ia32_rdtsc() - began;
}

/* Not probed unless asked for. */
static void comm_rank(void) {
    int own;
    MPI_Comm_rank(MPI_COMM_SELF, &own);
}

static const struct {
    const char *name;
    void (*turn)(void);
} loops[] = {
    {"MPI_Iprobe", probe},
    {"MPI_Test", test},
    {"MPI_Sendrecv", sendrecv},
    {"MPI_Irecv+MPI_Isend+MPI_Waitall", nonblocking},
    {"MPI_Allreduce", allreduce},
    {"MPI_Send+MPI_Recv", ping_pong},
    {"MPI_Pcontrol", look_away},
    {"time-stamps", time_stamps},
    {"MPI_Comm_rank", comm_rank},
};

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    long long x = *(const long long *)a, y = *(const long long *)b;
    return (x > y) - (x < y);
}

static void measure(void (*turn)(void), long batches, long turns, long apart, FILE *answers) {
    static long long times[MAX_BATCHES];
    long long began = now();
    for (long batch = 0; batch < batches; batch++) {
        long long start;
        do
            start = now();
        while (start < began + batch * apart);
        for (long i = 0; i < turns; i++)
            turn();
        times[batch] = now() - start;
    }
    qsort(times, (size_t)batches, sizeof *times, ascending);
    fprintf(answers, "%lld %lld\n", times[0], times[batches / 2]);
    fflush(answers);
}

static int connected(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return -1;
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return -1;
    return fd;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int peer = argc == 2 ? connected(argv[1]) : -1;
    FILE *requests = fdopen(peer, "r"), *answers = fdopen(peer, "w");
    if (requests == NULL || answers == NULL) {
        fprintf(stderr, "callrate: needs the path of a socket to connect to\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    char name[64];
    long batches, turns, apart;
    while (fscanf(requests, "%63s %ld %ld %ld", name, &batches, &turns, &apart) == 4) {
        size_t loop = 0;
        while (loop < sizeof loops / sizeof *loops && strcmp(loops[loop].name, name) != 0)
            loop++;
        if (loop == sizeof loops / sizeof *loops || batches < 1 || batches > MAX_BATCHES || turns < 1 || apart < 0) {
            fprintf(stderr, "callrate: cannot do %ld batches of %ld turns of %s, %ld ns apart\n", batches, turns, name, apart);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        in = 0;
        measure(loops[loop].turn, batches, turns, apart, answers);
        if (strcmp(name, "MPI_Sendrecv") == 0 && in != out)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}
