#include "worker/check/self_check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/text.h"
#include "common/run/speed.h"
#include "common/system/file.h"
#include "config.h"
#include "worker/check/self_check_parts.h"
#include "worker/comm/traincomm.h"
#include "worker/kernels/gemm.h"
#include "worker/kernels/kind.h"

#define FOUND_BYTES      65536
#define LOAD_LOW_SHARE   0.1  /* of the processors: so little of others hardly slows down */
#define MEMORY_LOW_SHARE 0.05 /* of all: then something of an earlier job is still there */

/* ---- who this is */

static void self_check_add_versions(json_t *report, json_t *list)
{
    char mpi[TRAINCOMM_TEXT_BYTES], cpu[SPEED_CPU_BYTES], host[HOST_NAME_MAX + 1] = "";

    gethostname(host, sizeof host - 1);
    traincomm_mpi_version(mpi, sizeof mpi);
    mpi[strcspn(mpi, ",\n")] = '\0';
    json_object_set_new(report, "t", json_number(clock_now()));
    json_object_set_new(report, "host", json_string(host));
    json_object_set_new(report, "kind", json_string(speed_cpu(cpu)));
    json_object_set_new(report, "version", json_string(PACKAGE_VERSION));
    json_object_set_new(report, "engine", json_string(kernels_kind()));
    json_object_set_new(report, "mpi", json_string(mpi));
    check_note(list, "versions", true, NULL, "train-worker %s with the %s engine, %s",
               PACKAGE_VERSION, kernels_kind(), mpi);
}

static void check_blas(json_t *report, json_t *list)
{
    const char *core = gemm_processor();
    bool slow = strcmp(core, "Prescott") == 0 || strcmp(core, "Generic") == 0;

    json_object_set_new(report, "blas", json_string(core));
    check_note(list, "BLAS", !slow,
               "OpenBLAS does not know this processor and takes its slowest kernels: set "
               "OPENBLAS_CORETYPE (as Haswell or SkylakeX) in the environment of the daemon and "
               "of jobs",
               "OpenBLAS for %s", core);
}

/* ---- what is free */

/* Of /proc/meminfo, in bytes. */
static double self_check_memory_of(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtod(at + strlen(name), NULL) * 1024 : 0;
}

static void check_memory(json_t *report, json_t *list)
{
    char text[4096];
    FILE *file = fopen("/proc/meminfo", "re");
    size_t got = file ? fread(text, 1, sizeof text - 1, file) : 0;

    if (file)
        fclose(file);
    text[got] = '\0';
    double all = self_check_memory_of(text, "MemTotal:"),
           free_bytes = self_check_memory_of(text, "MemAvailable:");
    json_object_set_new(report, "memory_bytes", json_number(all));
    json_object_set_new(report, "memory_free_bytes", json_number(free_bytes));
    check_note(list, "memory", free_bytes > MEMORY_LOW_SHARE * all,
               "look with top for processes of earlier jobs, and in /dev/shm and tmpfs for files",
               "%.1f of %.1f GB free", free_bytes / 1e9, all / 1e9);
}

/* ---- what else computes */

/* Seconds that the processors of this process have worked, and its own share of them. */
static void self_check_read_busy(double *all, double *own)
{
    FILE *file = fopen("/proc/stat", "re");
    char line[256];
    cpu_set_t allowed;
    struct rusage used;

    *all = 0;
    sched_getaffinity(0, sizeof allowed, &allowed);
    while (file && fgets(line, sizeof line, file)) {
        unsigned cpu;
        double user, nice, system, irq, soft, steal;
        if (sscanf(line, "cpu%u %lf %lf %lf %*f %*f %lf %lf %lf", &cpu, &user, &nice, &system, &irq,
                   &soft, &steal) == 7 &&
            cpu < CPU_SETSIZE && CPU_ISSET(cpu, &allowed))
            *all += (user + nice + system + irq + soft + steal) / (double)sysconf(_SC_CLK_TCK);
    }
    if (file)
        fclose(file);
    getrusage(RUSAGE_SELF, &used);
    *own = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Measures the speed, and with it how much others computed on the same processors meanwhile. */
static void self_check_speed_and_load(json_t *report, json_t *list)
{
    double all, own, all_before, own_before, began = clock_monotonic();

    self_check_read_busy(&all_before, &own_before);
    self_check_speed(report, list);
    self_check_read_busy(&all, &own);
    double others = (all - all_before - (own - own_before)) / (clock_monotonic() - began);
    double cores = json_number_value(json_object_get(report, "cores"));
    long load = others > LOAD_LOW_SHARE * cores ? lround(fmax(others, 1)) : 0;
    json_object_set_new(report, "load", json_integer(load));
    if (load)
        check_warn(list, "load", "repeat on an idle machine: these speeds are not reliable",
                   "%ld other thread%s computed meanwhile", load, plural(load));
    else
        check_note(list, "load", true, NULL, "nothing else computed meanwhile");
}

static bool self_check_is_writable(const char *folder, struct error *e)
{
    char path[PATH_MAX];

    /* Without a name, where the file system can: root looks at a folder that anybody writes to. */
    *path = '\0';
    int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
        snprintf(path, sizeof path, "%.4000s/.traind-check-XXXXXX", folder);
        fd = mkostemp(path, O_CLOEXEC);
    }
    bool good = fd >= 0 && write(fd, "x", 1) == 1 && fsync(fd) == 0;
    if (!good)
        error_set_errno(e, errno, "cannot write in %s", folder);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && *path)
        unlink(path);
    return good;
}

static bool check_scratch(const char *folder, json_t *report, json_t *list)
{
    static const char advice[] = "mount or clean the scratch of this machine";
    struct error e;
    size_t before = json_array_size(list);

    json_object_set_new(report, "scratch", json_pack("{s:s}", "path", folder));
    if (!self_check_is_writable(folder, &e)) {
        check_note(list, "scratch", false, advice, "%s", e.text);
        return false;
    }
    check_disk(list, "scratch", folder, advice);
    return json_is_true(json_object_get(json_array_get(list, before), "ok"));
}

/* ---- the whole */

static const char *self_check_outcome_name(int status)
{
    return status == SELF_CHECK_FINE      ? "fine"
           : status == SELF_CHECK_DATA    ? "data"
           : status == SELF_CHECK_SCRATCH ? "scratch"
                                          : "node";
}

/* text: of o->found; NULL: the data sets are looked at here. */
static bool check_data(const struct self_check_options *o, char *text, json_t *report, json_t *list)
{
    bool fine = true;

    json_object_set_new(report, "data", json_array());
    for (int i = 0; i < o->data_count; i++) {
        struct data_found found;
        if (o->found)
            data_read_line(&text, &found);
        else
            data_look(o->data[i], &found);
        data_note(o->data[i], &found, report, list);
        fine = fine && found.ok;
    }
    return fine;
}

/* A line an item, the advice below it where there is some: for the log of a node, where nothing is
 * fitted to a terminal. */
static void self_check_print_list(const json_t *list)
{
    const json_t *item;
    size_t i;

    json_array_foreach (list, i, item) {
        const char *advice = json_string_value(json_object_get(item, "advice"));
        printf("%-4s  %-9s  %s\n", check_word(item),
               json_string_value(json_object_get(item, "check")),
               json_string_value(json_object_get(item, "found")));
        if (advice)
            printf("                 %s\n", advice);
    }
}

static int self_check_print_lines(const struct self_check_options *o)
{
    int status = SELF_CHECK_FINE;

    for (int i = 0; i < o->data_count; i++) {
        struct data_found found;
        data_look(o->data[i], &found);
        data_print_line(stdout, &found);
        status = found.ok ? status : SELF_CHECK_DATA;
    }
    return status;
}

static int self_check_measure(const struct self_check_options *o, char *text, json_t *report,
                              json_t *list)
{
    bool data, scratch = true;

    self_check_speed_and_load(report, list);
    self_check_add_versions(report, list);
    check_blas(report, list);
    check_memory(report, list);
    check_clock(list);
    int status = check_all_ok(list) ? SELF_CHECK_FINE : SELF_CHECK_NODE;
    if (o->scratch)
        scratch = check_scratch(o->scratch, report, list);
    data = check_data(o, text, report, list);
    if (status == SELF_CHECK_FINE && !scratch)
        status = SELF_CHECK_SCRATCH;
    if (status == SELF_CHECK_FINE && !data)
        status = SELF_CHECK_DATA;
    return status;
}

int self_check(const struct self_check_options *o)
{
    double began = clock_monotonic();
    char *text = NULL;
    size_t bytes;
    struct error e;

    if (o->lines)
        return self_check_print_lines(o);
    if (o->found && file_read(o->found, FOUND_BYTES, &text, &bytes, &e)) {
        fprintf(stderr, "train-worker: --found: %s\n", e.text);
        return 2;
    }
    json_t *report = json_object(), *list = json_array();
    int status = self_check_measure(o, text, report, list);

    json_object_set_new(report, "outcome", json_string(self_check_outcome_name(status)));
    json_object_set_new(report, "seconds", json_number(clock_monotonic() - began));
    if (o->json) {
        json_object_set(report, "checks", list);
        json_dumpf(report, stdout, JSON_COMPACT | JSON_REAL_PRECISION(13));
        putchar('\n');
    } else {
        self_check_print_list(list);
    }
    json_decref(report);
    json_decref(list);
    free(text);
    return status;
}
