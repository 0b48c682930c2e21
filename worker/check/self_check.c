#include "worker/check/self_check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <regex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/dataset/file_list.h"
#include "common/dataset/manifest.h"
#include "common/digest.h"
#include "common/json.h"
#include "common/run/speed.h"
#include "common/system/file.h"
#include "common/text.h"
#include "common/xalloc.h"
#include "config.h"
#include "worker/check/speed.h"
#include "worker/comm/traincomm.h"
#include "worker/kernels/gemm.h"

#define DATA_TEXT_BYTES  512
#define FOUND_BYTES      65536
#define LOAD_LOW_SHARE   0.1  /* of the processors: less of other load hardly slows down */
#define MEMORY_LOW_SHARE 0.05 /* of all: with less, an earlier job has left something */

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
    json_object_set_new(report, "engine", json_string(isa_level()));
    json_object_set_new(report, "mpi", json_string(mpi));
    check_note(list, "versions", true, NULL, "train-worker %s with the %s engine, %s",
               PACKAGE_VERSION, isa_level(), mpi);
}

static void self_check_blas(json_t *report, json_t *list)
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

static double self_check_memory_of(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtod(at + strlen(name), NULL) * 1024 : 0;
}

static void self_check_memory(json_t *report, json_t *list)
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

static void self_check_speed_and_load(json_t *report, json_t *list)
{
    double all, own, all_before, own_before, began = clock_monotonic();

    self_check_read_busy(&all_before, &own_before);
    speed_measure(report, list);
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

    /* An unnamed file if supported, because root may check a world-writable folder. */
    *path = '\0';
    int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
        file_path(path, NULL, "%.4000s/.traind-check-XXXXXX", folder);
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

static bool self_check_scratch(const char *folder, json_t *report, json_t *list)
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

/* ---- data sets */

#define DATA_ADVICE                                                                                \
    "check that the file system is mounted here and that the path in the job is right; "           \
    "train-prep audit shows details"

/* A data set as found here or by another user's process. That process passes one line, which its
 * job may have tampered with: "ok SHARDS CLASSES IMAGES MANIFEST" (numbers; 32 hex digits or "-")
 * or "bad TEXT". */
struct data_found {
    bool ok;
    long long shards, classes, images;
    char manifest[DIGEST_BYTES]; /* of manifest.json; "" if none */
    char text[DATA_TEXT_BYTES];  /* what is wrong */
};

static bool self_check_find_manifest(const struct dataset_list *list, char path[PATH_MAX])
{
    static const char *const places[] = {"", "../"};

    for (size_t i = 0; i < 2; i++)
        if (file_path(path, NULL, "%s/%s" MANIFEST_NAME, list->folder, places[i]) == 0 &&
            access(path, R_OK) == 0)
            return true;
    return false;
}

/* train-prep stage may have copied only a part of the shards to this machine. */
static struct dataset_part self_check_part_of(const char *path)
{
    static const char *const places[] = {"", "../"};
    struct dataset_part part = {0, 1};
    char name[PATH_MAX];
    struct error e;

    for (size_t i = 0; i < 2 && part.of == 1; i++) {
        file_path(name, NULL, "%s/%s" MANIFEST_NAME, path, places[i]);
        json_t *manifest = json_read_fd(file_open(name, &e), name, MANIFEST_LIMIT_BYTES, &e);
        const json_t *stage = json_object_get(manifest, "stage");
        int nodes = (int)json_integer_value(json_object_get(stage, "nodes"));
        int node = (int)json_integer_value(json_object_get(stage, "node"));
        if (nodes > 1 && node >= 0 && node < nodes)
            part = (struct dataset_part){node, nodes};
        json_decref(manifest);
    }
    return part;
}

/* A file server that does not answer may still serve names and sizes from a cache. */
static int self_check_read_a_byte(const struct dataset_list *list, struct error *e)
{
    size_t first = 0;
    char byte;

    if (list->count == 0)
        return 0;
    while (first + 1 < list->count && list->bytes[first] == 0)
        first++; /* writers leave files empty that got no records */
    const char *path = list->files[first];
    int fd = file_open(path, e);
    if (fd < 0)
        return fd;
    ssize_t got = pread(fd, &byte, 1, 0);
    int reason = errno;
    close(fd);
    if (got < 0)
        return error_set_errno(e, reason, "cannot read %s", path);
    return got ? 0 : error_set(e, ERR_CORRUPT, "%s is empty", path);
}

static int self_check_read_image(const struct dataset_list *list, struct data_found *found,
                                 struct error *e)
{
    char manifest[PATH_MAX];
    int64_t *in_file = xcalloc(list->count + 1, sizeof *in_file);
    int status = self_check_read_a_byte(list, e);

    found->shards = (long long)list->count;
    found->classes = list->class_count;
    if (!status && list->format == DATASET_TFRECORD && self_check_find_manifest(list, manifest)) {
        status = digest_file(manifest, found->manifest, e);
        if (!status && !manifest_count(list, in_file))
            status = error_set(e, ERR_CORRUPT,
                               "the shards in %s do not have the names and sizes that %s gives "
                               "them",
                               list->folder, manifest);
        for (size_t i = 0; !status && i < list->count; i++)
            found->images += in_file[i];
    }
    free(in_file);
    return status;
}

static void self_check_inspect_data(const char *path, struct data_found *found)
{
    struct dataset_list files = {0};
    struct error e = {0};

    *found = (struct data_found){.ok = true};
    if (strcmp(path, "synthetic") == 0)
        return;
    int status = dataset_list_find(path, DATASET_TRAIN, self_check_part_of(path), &files, &e);
    if (!status)
        status = self_check_read_image(&files, found, &e);
    if (status) {
        *found = (struct data_found){0};
        snprintf(found->text, sizeof found->text, "%.*s", DATA_TEXT_BYTES - 8, e.text);
    }
    dataset_list_free(&files);
}

/* Makes it one line of valid UTF-8; file names may hold any bytes. */
static void self_check_clean(char *words)
{
    for (char *c = words; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    json_t *text = json_string(words);
    for (char *c = words; !text && *c; c++)
        if ((unsigned char)*c > 0x7e)
            *c = '?';
    json_decref(text);
}

static void self_check_print_data(FILE *out, const struct data_found *found)
{
    char words[DATA_TEXT_BYTES];

    snprintf(words, sizeof words, "%s", found->text);
    self_check_clean(words);
    if (found->ok)
        fprintf(out, "ok %lld %lld %lld %s\n", found->shards, found->classes, found->images,
                *found->manifest ? found->manifest : "-");
    else
        fprintf(out, "bad %s\n", words);
}

static bool self_check_read_ok(const char *line, struct data_found *found)
{
    static const char pattern[] = "^ok ([0-9]{1,12}) ([0-9]{1,12}) ([0-9]{1,15}) (-|[0-9a-f]{32})$";
    regmatch_t m[5];
    regex_t regex;

    if (regcomp(&regex, pattern, REG_EXTENDED))
        return false;
    bool matches = regexec(&regex, line, 5, m, 0) == 0;
    regfree(&regex);
    if (!matches)
        return false;
    *found = (struct data_found){.ok = true,
                                 .shards = strtoll(line + m[1].rm_so, NULL, 10),
                                 .classes = strtoll(line + m[2].rm_so, NULL, 10),
                                 .images = strtoll(line + m[3].rm_so, NULL, 10)};
    if (line[m[4].rm_so] != '-')
        snprintf(found->manifest, sizeof found->manifest, "%s", line + m[4].rm_so);
    return true;
}

static void self_check_parse_data(char **text, struct data_found *found)
{
    char *line = strsep(text, "\n");

    *found = (struct data_found){.text = "the look at it gave no answer"};
    if (!line || self_check_read_ok(line, found))
        return;
    bool is_text = strncmp(line, "bad ", 4) == 0 && strlen(line) < DATA_TEXT_BYTES;
    snprintf(found->text, sizeof found->text, "%s",
             is_text ? line + 4 : "the look at it gave an answer that cannot be read");
    self_check_clean(found->text);
}

static void self_check_note_data(const char *path, const struct data_found *found, json_t *report,
                                 json_t *list)
{
    json_t *item = json_pack("{s:s, s:b, s:I, s:I, s:s*}", "path", path, "ok", found->ok, "shards",
                             (json_int_t)found->shards, "classes", (json_int_t)found->classes,
                             "manifest", *found->manifest ? found->manifest : NULL);

    if (*found->manifest)
        json_object_set_new(item, "images", json_integer((json_int_t)found->images));
    json_array_append_new(json_object_get(report, "data"), item);
    if (!found->ok)
        check_note(list, "data", false, DATA_ADVICE, "%s", found->text);
    else if (*found->manifest)
        check_note(list, "data", true, NULL, "%s: %lld shards, %lld images, manifest %s", path,
                   found->shards, found->images, found->manifest);
    else if (found->shards)
        check_note(list, "data", true, NULL, "%s: %lld shards, without a manifest", path,
                   found->shards);
    else if (found->classes)
        check_note(list, "data", true, NULL, "%s: %lld class folders", path, found->classes);
    else
        check_note(list, "data", true, NULL, "%s", path);
}

static const char *self_check_outcome_name(int status)
{
    return status == SELF_CHECK_FINE      ? "fine"
           : status == SELF_CHECK_DATA    ? "data"
           : status == SELF_CHECK_SCRATCH ? "scratch"
                                          : "node";
}

/* text: content of o->found; NULL: check the data sets here */
static bool self_check_data(const struct self_check_options *o, char *text, json_t *report,
                            json_t *list)
{
    bool fine = true;

    json_object_set_new(report, "data", json_array());
    for (int i = 0; i < o->data_count; i++) {
        struct data_found found;
        if (o->found)
            self_check_parse_data(&text, &found);
        else
            self_check_inspect_data(o->data[i], &found);
        self_check_note_data(o->data[i], &found, report, list);
        fine = fine && found.ok;
    }
    return fine;
}

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
        self_check_inspect_data(o->data[i], &found);
        self_check_print_data(stdout, &found);
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
    self_check_blas(report, list);
    self_check_memory(report, list);
    check_clock(list);
    int status = check_all_ok(list) ? SELF_CHECK_FINE : SELF_CHECK_NODE;
    if (o->scratch)
        scratch = self_check_scratch(o->scratch, report, list);
    data = self_check_data(o, text, report, list);
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
