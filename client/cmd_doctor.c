#include <curl/curl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/print.h"
#include "common/clock.h"
#include "daemon/launch/launch.h"

#define DISK_LOW_BYTES 1e9
#define MATRIX         768 /* of the product that is timed */
#define PRODUCTS       5

/* What is found goes into an array of {"check", "ok", "found", "advice"}. */
static void note(json_t *list, const char *check, bool ok, const char *advice, const char *format,
                 ...) __attribute__((format(printf, 5, 6)));
static void note(json_t *list, const char *check, bool ok, const char *advice, const char *format,
                 ...)
{
    char found[256];
    va_list args;

    va_start(args, format);
    vsnprintf(found, sizeof found, format, args);
    va_end(args);
    json_array_append_new(list, json_pack("{s:s, s:b, s:s, s:s?}", "check", check, "ok", ok,
                                          "found", found, "advice", ok ? NULL : advice));
}

/* ---------------------------------------------------------------- BLAS */

typedef void sgemm_function(int, int, int, int, int, int, float, const float *, int, const float *,
                            int, float, float *, int);

/* The best of some products of two square matrices, on all threads BLAS takes. */
static double measure_gflops(sgemm_function *sgemm)
{
    size_t bytes = sizeof(float) * MATRIX * MATRIX;
    float *a = malloc(bytes), *b = malloc(bytes), *c = calloc(1, bytes);
    double best = 0;

    for (int i = 0; a && b && i < MATRIX * MATRIX; i++)
        a[i] = b[i] = (float)(i % 7) - 3;
    for (int i = 0; a && b && c && i < PRODUCTS; i++) {
        double began = clock_monotonic();
        sgemm(101, 111, 111, MATRIX, MATRIX, MATRIX, 1, a, MATRIX, b, MATRIX, 0, c, MATRIX);
        double rate = 2e-9 * MATRIX * MATRIX * MATRIX / (clock_monotonic() - began);
        best = rate > best ? rate : best;
    }
    free(a);
    free(b);
    free(c);
    return best;
}

static void check_blas(json_t *list)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    char *(*core)(void) = NULL;
    sgemm_function *sgemm = NULL;

    if (library) { /* POSIX's way to a function from dlsym */
        *(void **)&core = dlsym(library, "openblas_get_corename");
        *(void **)&sgemm = dlsym(library, "cblas_sgemm");
    }
    if (!core || !sgemm) {
        note(list, "BLAS", false, "install OpenBLAS: apt-get install libopenblas0", "no OpenBLAS");
    } else {
        bool slow = strcmp(core(), "Prescott") == 0 || strcmp(core(), "Generic") == 0;
        note(list, "BLAS", !slow,
             "OpenBLAS does not know this processor and takes its slowest kernels: set "
             "OPENBLAS_CORETYPE (as Haswell or SkylakeX) in the daemon's environment",
             "OpenBLAS for %s, %.1f GFLOP/s in single precision", core(), measure_gflops(sgemm));
    }
    if (library)
        dlclose(library);
}

/* ---------------------------------------------------------------- programs */

/* The first line that a program prints; false where it cannot be run or fails. */
static bool first_line(char *const *argv, char *line, size_t bytes)
{
    posix_spawn_file_actions_t actions;
    int ends[2], result = 0;
    pid_t pid;

    line[0] = '\0';
    if (pipe2(ends, O_CLOEXEC))
        return false;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int failed = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    ssize_t got = failed ? 0 : read(ends[0], line, bytes - 1);
    close(ends[0]);
    if (failed)
        return false;
    line[got > 0 ? got : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    waitpid(pid, &result, 0);
    return got > 0 && (result == 0 || WIFSIGNALED(result)); /* of more than a line: SIGPIPE */
}

static void check_programs(json_t *list)
{
    char line[128];
    char *mpirun[] = {(char *)MPIRUN, (char *)"--version", NULL};
    char *worker[] = {(char *)BINDIR "/train-worker", (char *)"--version", NULL};
    char *slurm[] = {(char *)"sinfo", (char *)"--version", NULL};

    bool ok = first_line(mpirun, line, sizeof line);
    note(list, "MPI", ok,
         "install Open MPI: apt-get install openmpi-bin, or set mpirun in traind.conf", "%s",
         ok ? line : MPIRUN " cannot be run");
    ok = first_line(worker, line, sizeof line);
    note(list, "worker", ok, "make install, or set worker in traind.conf", "%s",
         ok ? line : BINDIR "/train-worker cannot be run");
    ok = first_line(slurm, line, sizeof line);
    note(list, "Slurm", true, NULL, "%s", ok ? line : "not here; it is not needed");
}

/* ---------------------------------------------------------------- the machine and the daemon */

static void check_disk(json_t *list)
{
    const char *state = getenv("TRAIND_STATE");
    struct statvfs fs;

    if (!state || !*state)
        state = "/var/lib/traind";
    if (statvfs(state, &fs)) {
        note(list, "disk", true, NULL, "%s is not there yet; TRAIND_STATE names another folder",
             state);
        return;
    }
    double free_bytes = (double)fs.f_bavail * (double)fs.f_frsize;
    note(list, "disk", free_bytes > DISK_LOW_BYTES,
         "make room, or set keep_runs and keep_checkpoints in traind.conf", "%.1f GB free in %s",
         free_bytes / 1e9, state);
}

static void check_clock(json_t *list)
{
    struct timex t = {0};
    bool set = clock_now() > 1.7e9;
    bool synchronised = adjtimex(&t) >= 0 && !(t.status & STA_UNSYNC);

    note(list, "clock", set, "set the clock: the times of jobs and the ends of tokens come from it",
         "%s",
         !set           ? "is years behind"
         : synchronised ? "synchronised"
                        : "runs free, without NTP");
}

static void check_daemon(json_t *list)
{
    struct error e;
    json_t *ready;

    if (api_get("/readyz", &ready, &e) < 0) {
        note(list, "daemon", false, "start traind, or name it with --server; see its log", "%s",
             e.text);
        return;
    }
    const json_t *slots = json_object_get(ready, "slots");
    long long total = json_integer_value(json_object_get(slots, "total"));
    note(list, "daemon", true, NULL, "ready at %s", client.server);
    note(list, "slots", total <= launch_node_cores() || total == 0,
         "slots in traind.conf is more than the cores of this machine: jobs will be slow",
         "%lld, of which %lld are in use; this machine has %lld cores", total,
         (long long)json_integer_value(json_object_get(slots, "used")),
         (long long)launch_node_cores());
    json_decref(ready);
}

int cmd_doctor(int argc, char **argv)
{
    struct cmd_args args;
    const json_t *item;
    bool all = true;
    size_t i;
    int done = cmd_parse(&args, argc, argv);

    if (done >= 0)
        return done;
    json_t *list = json_array();
    note(list, "libraries", true, NULL, "libcurl %s, jansson %s",
         curl_version_info(CURLVERSION_NOW)->version, jansson_version_str());
    check_blas(list);
    check_programs(list);
    check_disk(list);
    check_clock(list);
    check_daemon(list);
    json_array_foreach (list, i, item) {
        bool ok = json_is_true(json_object_get(item, "ok"));
        all = all && ok;
        if (client.json)
            continue;
        printf("%-4s  %-9s  %s\n", ok ? "ok" : "BAD",
               json_string_value(json_object_get(item, "check")),
               json_string_value(json_object_get(item, "found")));
        if (!ok)
            printf("                 %s\n", json_string_value(json_object_get(item, "advice")));
    }
    if (client.json)
        print_json(list);
    json_decref(list);
    return all ? 0 : error_type(ERR_INTERNAL)->exit_code;
}
