/* Copies shards to a local disk. Used in a Slurm prolog, so it may run repeatedly, in several
 * processes of a node, and on many nodes that read from one file server. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/digest.h"
#include "common/dataset/manifest.h"
#include "common/json.h"
#include "common/system/command_line.h"
#include "common/system/file.h"
#include "common/system/host.h"
#include "common/text.h"
#include "common/xalloc.h"
#include "prep/manifest_shards.h"
#include "prep/prep.h"
#include "prep/work.h"
#include "prep/write/out_folder.h"

#define CHUNK_BYTES (1 << 20)
#define LOCK_NAME   ".stage.lock"
#define SPARE_BYTES (1 << 20) /* for the manifest and the folders */

struct stage_options {
    const char *from, *to;
    struct dataset_part part;   /* the part for this node */
    const char *hosts, *host;   /* options from which part is derived; or NULL */
    uint64_t bandwidth_per_sec; /* in bytes; 0: no limit */
    uint64_t keep_free;         /* bytes to leave free on the file system of `to` */
    bool keep;                  /* keep shards of earlier stagings that are not needed now */
    bool json;
};

enum stage_fault { STAGE_FAULT_NONE, STAGE_FAULT_DATA, STAGE_FAULT_SCRATCH };

static const char *const roles[] = {"train", "validation"};

struct stage {
    const struct stage_options *options;
    enum stage_fault *fault;
    struct manifest_shards from;
    uint8_t *chunk; /* (CHUNK_BYTES) */
    bool was_staged;
    bool *wanted;            /* (from.count): shards to copy */
    uint64_t unwanted_bytes; /* disk space of shards that will be removed */
    int unwanted;
    struct progress progress;
    uint64_t budget_bytes; /* copied since budget_started; to limit the bandwidth */
    double budget_started, started;
    uint64_t copied_bytes, kept_bytes;
    int copied, kept;
};

/* Errors are attributed to the data or to the scratch disk. */
static int stage_data_error(struct stage *s, int rc)
{
    if (rc)
        *s->fault = STAGE_FAULT_DATA;
    return rc;
}

static int stage_scratch_error(struct stage *s, int rc)
{
    if (rc)
        *s->fault = STAGE_FAULT_SCRATCH;
    return rc;
}

static void stage_print_event(const struct stage *s, json_t *line)
{
    if (s->options->json) {
        json_dumpf(line, stdout, JSON_COMPACT);
        putchar('\n');
        fflush(stdout);
    }
    json_decref(line);
}

static void stage_pace(struct stage *s, size_t bytes)
{
    uint64_t rate = s->options->bandwidth_per_sec;

    s->budget_bytes += bytes;
    if (rate == 0)
        return;
    double due = (double)s->budget_bytes / (double)rate;
    double ahead = due - (clock_monotonic() - s->budget_started);
    if (ahead > 0) {
        struct timespec wait = {(time_t)ahead, (long)((ahead - (double)(time_t)ahead) * 1e9)};
        nanosleep(&wait, NULL); /* if a signal ends it early, prep_interrupted is set */
    }
}

static void stage_make_paths(const struct stage *s, const struct manifest_shard *shard,
                             char from[PATH_MAX], char to[PATH_MAX], char temporary[PATH_MAX])
{
    int folder = (int)(strchr(shard->file, '/') - shard->file);

    file_path(from, NULL, "%s/%s", s->options->from, shard->file);
    file_path(to, NULL, "%s/%s", s->options->to, shard->file);
    file_path(temporary, NULL, "%s/%.*s/.%s.tmp", s->options->to, folder, shard->file,
              shard->file + folder + 1);
}

static int stage_is_whole(struct stage *s, const char *path, const struct manifest_shard *shard,
                          bool *whole, struct error *e)
{
    char hex[DIGEST_BYTES];
    struct stat st;
    int fd = file_open(path, e);
    ssize_t got;

    *whole = false;
    if (fd < 0)
        return fd == -ERR_NOT_FOUND ? 0 : fd;
    if (fstat(fd, &st)) {
        int reason = errno;
        close(fd);
        return error_set_errno(e, reason, "cannot read %s", path);
    }
    if ((uint64_t)st.st_size == shard->bytes) {
        struct digest *digest = digest_begin();
        while ((got = read(fd, s->chunk, CHUNK_BYTES)) > 0 && !prep_interrupted)
            digest_add(digest, s->chunk, (size_t)got);
        digest_end(digest, hex);
        *whole = got == 0 && strcmp(hex, shard->hash) == 0;
    }
    close(fd);
    return prep_interrupted ? error_set(e, ERR_INTERRUPTED, "interrupted") : 0;
}

static int stage_copy_bytes(struct stage *s, int in, int out, const char *from,
                            const char *temporary, uint64_t limit, uint64_t *bytes,
                            struct digest *digest, struct error *e)
{
    ssize_t got;

    for (*bytes = 0; (got = read(in, s->chunk, CHUNK_BYTES)) != 0;) {
        if (prep_interrupted)
            return error_set(e, ERR_INTERRUPTED, "interrupted");
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return stage_data_error(s, error_set_errno(e, errno, "cannot read %s", from));
        *bytes += (uint64_t)got;
        if (*bytes > limit)
            break;
        digest_add(digest, s->chunk, (size_t)got);
        if (file_write_all(out, s->chunk, (size_t)got))
            return stage_scratch_error(s, error_set_errno(e, errno, "cannot write %s", temporary));
        progress_add(&s->progress, 0, got);
        stage_pace(s, (size_t)got);
    }
    return 0;
}

/* Copies between open files and compares the data with the manifest. */
static int stage_copy_checked(struct stage *s, int in, int out, const char *from,
                              const char *temporary, const struct manifest_shard *shard,
                              struct error *e)
{
    struct digest *digest = digest_begin();
    char hex[DIGEST_BYTES];
    uint64_t bytes;

    int rc = stage_copy_bytes(s, in, out, from, temporary, shard->bytes, &bytes, digest, e);
    digest_end(digest, hex);
    if (rc)
        return rc;
    if (bytes != shard->bytes)
        return stage_data_error(
            s, error_set(e, ERR_CORRUPT, "%s is %s than the %" PRIu64 " bytes of the manifest",
                         from, bytes < shard->bytes ? "shorter" : "longer", shard->bytes));
    if (strcmp(hex, shard->hash) != 0)
        return stage_data_error(
            s,
            error_set(e, ERR_CORRUPT, "%s does not match the manifest: its hash is %s, expected %s",
                      from, hex, shard->hash));
    return fsync(out)
               ? stage_scratch_error(s, error_set_errno(e, errno, "cannot write %s", temporary))
               : 0;
}

static int stage_copy_shard(struct stage *s, const struct manifest_shard *shard, struct error *e)
{
    char from[PATH_MAX], to[PATH_MAX], temporary[PATH_MAX];

    stage_make_paths(s, shard, from, to, temporary);
    int in = file_open(from, e);
    if (in < 0)
        return stage_data_error(s, in);
    unlink(temporary); /* left by a run that was killed; never write through a link */
    int out = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (out < 0) {
        int reason = errno;
        close(in);
        return stage_scratch_error(s, error_set_errno(e, reason, "cannot create %s", temporary));
    }
    posix_fadvise(in, 0, 0, POSIX_FADV_SEQUENTIAL);
    int rc = stage_copy_checked(s, in, out, from, temporary, shard, e);
    close(in);
    if (close(out) && rc == 0)
        rc = stage_scratch_error(s, error_set_errno(e, errno, "cannot write %s", temporary));
    if (rc == 0 && rename(temporary, to))
        rc = stage_scratch_error(s, error_set_errno(e, errno, "cannot rename %s", temporary));
    if (rc) {
        unlink(temporary);
        return rc;
    }
    s->copied++;
    s->copied_bytes += shard->bytes;
    stage_print_event(s, json_pack("{s:s, s:s, s:I, s:i, s:I}", "type", "copied", "file",
                                   shard->file, "bytes", (json_int_t)shard->bytes, "files_done",
                                   s->copied, "bytes_done", (json_int_t)s->copied_bytes));
    return 0;
}

static int stage_find_wanted(struct stage *s, uint64_t *bytes, struct error *e)
{
    char from[PATH_MAX], to[PATH_MAX], temporary[PATH_MAX];

    *bytes = 0;
    for (size_t i = 0; i < s->from.count; i++) {
        const struct manifest_shard *shard = &s->from.shards[i];
        bool whole;
        if (!manifest_shard_in(shard, s->options->part))
            continue;
        stage_make_paths(s, shard, from, to, temporary);
        unlink(temporary); /* left by an interrupted copy, as this process has the lock */
        int rc = stage_is_whole(s, to, shard, &whole, e);
        if (rc)
            return rc == -ERR_INTERRUPTED ? rc : stage_scratch_error(s, rc);
        s->wanted[i] = !whole;
        *bytes += whole ? 0 : shard->bytes;
        s->kept += whole;
        s->kept_bytes += whole ? shard->bytes : 0;
    }
    return 0;
}

#define SIZE_TEXT_BYTES 32
static const char *stage_size_text(uint64_t bytes, char text[SIZE_TEXT_BYTES])
{
    static const char *const units[] = {"KB", "MB", "GB", "TB"};
    double size = (double)bytes * 1e-3;
    size_t unit = 0;

    for (; size >= 999.95 && unit < 3; unit++)
        size *= 1e-3;
    snprintf(text, SIZE_TEXT_BYTES, "%.1f %s", size, units[unit]);
    return text;
}

/* Called before anything is removed, so that a failure does not change the folder. */
static int stage_check_space(struct stage *s, uint64_t needed, struct error *e)
{
    char there[SIZE_TEXT_BYTES], wanted[SIZE_TEXT_BYTES], missing[SIZE_TEXT_BYTES];
    struct statvfs fs;
    uint64_t free_bytes;

    if (needed == 0)
        return 0;
    if (statvfs(s->options->to, &fs))
        return stage_scratch_error(s,
                                   error_set_errno(e, errno, "cannot access %s", s->options->to));
    free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize + s->unwanted_bytes;
    needed += s->options->keep_free + SPARE_BYTES;
    if (free_bytes >= needed)
        return 0;
    return stage_scratch_error(
        s, error_set(e, ERR_NO_SPACE, "%s has %s free, and %s are needed%s: %s too few",
                     s->options->to, stage_size_text(free_bytes, there),
                     stage_size_text(needed, wanted),
                     s->options->keep_free ? " in addition to --keep-free" : "",
                     stage_size_text(needed - free_bytes, missing)));
}

static bool stage_is_wanted(const struct stage *s, const char *role, const char *name)
{
    size_t folder = strlen(role);

    for (size_t i = 0; i < s->from.count; i++) {
        const char *file = s->from.shards[i].file;
        if (manifest_shard_in(&s->from.shards[i], s->options->part) &&
            strncmp(file, role, folder) == 0 && file[folder] == '/' &&
            strcmp(file + folder + 1, name) == 0)
            return true;
    }
    return false;
}

/* Calls act for each shard of an earlier staging that is not needed now. Such shards take space,
 * and a folder with shards of two data sets cannot be read. */
static int stage_each_unwanted(struct stage *s, const char *role,
                               int (*act)(struct stage *s, const char *path, struct error *e),
                               struct error *e)
{
    char folder[PATH_MAX], path[PATH_MAX];
    struct dirent *entry;
    DIR *dir;
    int rc = 0;

    if (!s->was_staged || s->options->keep)
        return 0;
    file_path(folder, NULL, "%s/%s", s->options->to, role);
    dir = opendir(folder);
    while (dir && rc == 0 && (entry = readdir(dir))) {
        file_path(path, NULL, "%s/%s/%s", s->options->to, role, entry->d_name);
        if (out_folder_is_shard(entry->d_name, role) && !stage_is_wanted(s, role, entry->d_name))
            rc = act(s, path, e);
    }
    if (dir)
        closedir(dir);
    return rc;
}

static int stage_count_unwanted(struct stage *s, const char *path, struct error *e)
{
    struct stat st;

    if (lstat(path, &st))
        return stage_scratch_error(s, error_set_errno(e, errno, "cannot access %s", path));
    s->unwanted++;
    if (st.st_nlink == 1) /* otherwise removing it frees no space, as it has another name */
        s->unwanted_bytes += (uint64_t)st.st_blocks * 512;
    return 0;
}

static int stage_remove_unwanted(struct stage *s, const char *path, struct error *e)
{
    return unlink(path)
               ? stage_scratch_error(s, error_set_errno(e, errno, "cannot remove %s", path))
               : 0;
}

/* From here on the folder is incomplete until all shards are copied. */
static int stage_remove_manifest(struct stage *s, struct error *e)
{
    char path[PATH_MAX];

    file_path(path, NULL, "%s/" MANIFEST_NAME, s->options->to);
    if (unlink(path) && errno != ENOENT)
        return stage_scratch_error(s, error_set_errno(e, errno, "cannot remove %s", path));
    file_sync_dir(s->options->to);
    return 0;
}

static int stage_write_manifest(struct stage *s, struct error *e)
{
    struct dataset_part part = s->options->part;
    char path[PATH_MAX];

    for (int r = 0; r < 2; r++) { /* the names of the shards must be on disk before the manifest */
        file_path(path, NULL, "%s/%s", s->options->to, roles[r]);
        file_sync_dir(path);
    }
    file_path(path, NULL, "%s/" MANIFEST_NAME, s->options->to);
    if (part.of > 1)
        json_object_set_new(s->from.manifest, "stage",
                            json_pack("{s:i, s:i}", "node", part.number, "nodes", part.of));
    return stage_scratch_error(s, json_file_write(path, s->from.manifest, e));
}

/* Refuses a folder that was not written by stage, as it may be the only copy of a data set. */
static int stage_check_folder(struct stage *s, struct error *e)
{
    char path[PATH_MAX];

    file_path(path, NULL, "%s/" LOCK_NAME, s->options->to);
    s->was_staged = access(path, F_OK) == 0;
    file_path(path, NULL, "%s/" MANIFEST_NAME, s->options->to);
    if (s->was_staged || access(path, F_OK))
        return 0;
    return stage_scratch_error(
        s,
        error_set(e, ERR_CONFLICT, "%s contains other data: choose another --to", s->options->to));
}

/* Waits for other processes that stage to the same folder. */
static int stage_lock(struct stage *s, int *lock, struct error *e)
{
    char path[PATH_MAX];
    int rc = 0;

    *lock = -1;
    for (int r = 0; r < 2 && rc == 0; r++) {
        file_path(path, NULL, "%s/%s", s->options->to, roles[r]);
        if (json_object_get(s->from.manifest, roles[r]))
            rc = stage_scratch_error(s, file_make_dirs(path, e));
    }
    if (rc)
        return rc;
    file_path(path, NULL, "%s/" LOCK_NAME, s->options->to);
    *lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (*lock < 0)
        return stage_scratch_error(s, error_set_errno(e, errno, "cannot create %s", path));
    if (flock(*lock, LOCK_EX | LOCK_NB) == 0)
        return 0;
    fprintf(stderr, "train-prep: another process is staging to %s: waiting for it\n",
            s->options->to);
    while (flock(*lock, LOCK_EX)) {
        if (errno == EINTR && prep_interrupted)
            return error_set(e, ERR_INTERRUPTED, "interrupted");
        if (errno != EINTR)
            return stage_scratch_error(s, error_set_errno(e, errno, "cannot lock %s", path));
    }
    return 0;
}

static int stage_copy_wanted(struct stage *s, uint64_t bytes, struct error *e)
{
    int rc = 0;

    progress_begin(&s->progress, "stage", 0, (int64_t)bytes);
    s->budget_started = clock_monotonic();
    for (size_t i = 0; i < s->from.count && rc == 0; i++)
        if (s->wanted[i])
            rc = stage_copy_shard(s, &s->from.shards[i], e);
    progress_end(&s->progress);
    return rc;
}

static void stage_report(struct stage *s)
{
    double seconds = clock_monotonic() - s->started;

    if (!s->options->json) {
        printf("%s: %d shard%s (%.1f MB) copied, %d (%.1f MB) already there; %.1f s\n",
               s->options->to, s->copied, plural(s->copied), (double)s->copied_bytes * 1e-6,
               s->kept, (double)s->kept_bytes * 1e-6, seconds);
        return;
    }
    stage_print_event(s, json_pack("{s:s, s:i, s:I, s:i, s:I, s:o}", "type", "done", "copied",
                                   s->copied, "copied_bytes", (json_int_t)s->copied_bytes, "kept",
                                   s->kept, "kept_bytes", (json_int_t)s->kept_bytes, "seconds",
                                   json_number(seconds)));
}

static int stage_make_room(struct stage *s, uint64_t bytes, struct error *e)
{
    if (bytes == 0 && s->unwanted == 0)
        return 0;
    int rc = stage_remove_manifest(s, e);
    for (int r = 0; r < 2 && rc == 0; r++)
        rc = stage_each_unwanted(s, roles[r], stage_remove_unwanted, e);
    return rc;
}

static int stage_locked(struct stage *s, struct error *e)
{
    uint64_t bytes;
    int rc = 0;

    for (int r = 0; r < 2 && rc == 0; r++)
        rc = stage_each_unwanted(s, roles[r], stage_count_unwanted, e);
    if (rc == 0)
        rc = stage_find_wanted(s, &bytes, e);
    if (rc == 0)
        rc = stage_check_space(s, bytes, e);
    if (rc == 0)
        rc = stage_make_room(s, bytes, e);
    if (rc)
        return rc;
    stage_print_event(s, json_pack("{s:s, s:I, s:i}", "type", "start", "bytes", (json_int_t)bytes,
                                   "kept", s->kept));
    rc = stage_copy_wanted(s, bytes, e);
    if (rc == 0)
        rc = stage_write_manifest(s, e);
    if (rc == 0)
        stage_report(s);
    return rc;
}

static int stage_run(const struct stage_options *o, enum stage_fault *fault, struct error *e)
{
    struct stage s = {.options = o, .fault = fault, .started = clock_monotonic()};
    int lock = -1;

    *fault = STAGE_FAULT_NONE;
    int rc = stage_data_error(&s, manifest_shards_read(o->from, &s.from, e));
    if (rc == 0 && s.from.part.of > 1)
        rc = stage_data_error(
            &s, error_set(e, ERR_INVALID,
                          "%s is a staged copy, perhaps of a part: use the original", o->from));
    s.chunk = xmalloc(CHUNK_BYTES);
    s.wanted = xcalloc(s.from.count + 1, sizeof *s.wanted);
    if (rc == 0)
        rc = stage_check_folder(&s, e);
    if (rc == 0)
        rc = stage_lock(&s, &lock, e);
    if (rc == 0)
        rc = stage_locked(&s, e);
    if (lock >= 0)
        close(lock);
    free(s.chunk);
    free(s.wanted);
    manifest_shards_free(&s.from);
    return rc;
}

#define NODES_MAX    100000
#define EXIT_DATA    6
#define EXIT_SCRATCH 7

/* Parses sizes such as "200M": K, M, G, T are powers of 1000. */
static int stage_parse_size(const struct command_option *option, const char *text, void *field,
                            struct error *e)
{
    static const char units[] = "KMGT";
    char *end;
    double value = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;

    for (const char *u = units; unit && u <= unit; u++)
        value *= 1000;
    if (end == text || (*end && (!unit || end[1])) || !(value >= 1) || value > 1e18)
        return error_set(e, ERR_USAGE, "--%s %s: expected a size like 500K, 200M, 10G or 1.5T",
                         option->name, text);
    *(uint64_t *)field = (uint64_t)value;
    return 0;
}

#define AT(field) offsetof(struct stage_options, field)

/* clang-format off */
static const struct command_option stage_table[] = {
    {.name = "from", .value = "DIR", .kind = OPTION_TEXT, .offset = AT(from), .required = true,
     .help = "data set made by train-prep convert"},
    {.name = "to", .value = "SCRATCH", .kind = OPTION_TEXT, .offset = AT(to), .required = true,
     .help = "folder on a local disk of this node; created if missing"},
    {.name = "node", .value = "I", .kind = OPTION_INT, .offset = AT(part.number), .max = NODES_MAX - 1,
     .help = "number of this node, from 0 (default: 0)"},
    {.name = "nodes", .value = "N", .kind = OPTION_INT, .offset = AT(part.of), .min = 1, .max = NODES_MAX,
     .help = "number of nodes: training shard s goes to node s modulo N, validation shards to all "
             "(default: 1, all shards)"},
    {.name = "hosts", .value = "LIST", .kind = OPTION_TEXT, .offset = AT(hosts),
     .help = "instead of --node and --nodes: the nodes of a Slurm job, as in n[1-4,7] (SLURM_NODELIST); if "
             "--nodes differs from their number, all shards are copied"},
    {.name = "host", .value = "NAME", .kind = OPTION_TEXT, .offset = AT(host),
     .help = "instead of --node: the name of this node in that list"},
    {.name = "bandwidth", .value = "SIZE", .kind = OPTION_TAKEN, .offset = AT(bandwidth_per_sec), .parse = stage_parse_size,
     .help = "read at most this many bytes per second, as in 200M (default: no limit)"},
    {.name = "keep-free", .value = "SIZE", .kind = OPTION_TAKEN, .offset = AT(keep_free), .parse = stage_parse_size,
     .help = "leave this much disk space free, as in 10G (default: 0)"},
    {.name = "keep", .kind = OPTION_FLAG, .offset = AT(keep),
     .help = "keep shards of an earlier staging that this node does not need (default: remove them)"},
    {.name = "json", .kind = OPTION_FLAG, .offset = AT(json),
     .help = "print progress as one JSON object per line"},
    {0},
};
/* clang-format on */

static int stage_check_options(void *fields, struct error *e)
{
    struct stage_options *o = fields;

    if (!o->hosts != !o->host)
        return error_set(e, ERR_USAGE, "--hosts and --host must be used together");
    int stated = o->part.of;
    if (o->hosts && (o->part.number = host_list_place(o->hosts, o->host, &o->part.of)) < 0)
        return error_set(e, ERR_USAGE, "--host %s is not in --hosts %s", o->host, o->hosts);
    /* Slurm's prolog may get the nodes of a step instead of those of the job. */
    if (o->hosts && stated > 1 && stated != o->part.of) {
        fprintf(stderr,
                "train-prep: --hosts %s has %d nodes, but --nodes is %d: copying all shards\n",
                o->hosts, o->part.of, stated);
        o->part = (struct dataset_part){0, 1};
    }
    if (o->part.number >= o->part.of)
        return error_set(e, ERR_USAGE,
                         "--node %d is out of range: with --nodes %d it must be from 0 to %d",
                         o->part.number, o->part.of, o->part.of - 1);
    return 0;
}

static int stage_command_run(int argc, char **argv, struct error *e)
{
    static const struct command_line line = {
        .program = "train-prep stage",
        .usage = "Usage: train-prep stage [OPTION...]",
        .options = stage_table,
        .doc = "Copies the shards that a node needs to its own disk and verifies them; files that "
               "are already there and valid are not copied again. Exit status: 0 complete, 2 wrong "
               "use, 6 the data is invalid or missing (on all nodes), 7 this node's scratch disk "
               "is too small, 130 interrupted.",
        .check = stage_check_options,
    };
    struct stage_options o = {
        .part = {0, 1}
    };
    enum stage_fault fault;

    int rc = command_line_read(&line, argc, argv, &o);
    if (rc >= 0)
        return rc;
    rc = stage_run(&o, &fault, e);
    if (rc == 0 || fault == STAGE_FAULT_NONE)
        return rc;
    fprintf(stderr, "train-prep stage: %s: %s\n",
            fault == STAGE_FAULT_DATA ? "the data" : "scratch", e->text);
    return fault == STAGE_FAULT_DATA ? EXIT_DATA : EXIT_SCRATCH;
}

const struct prep_command stage_command = {
    "stage", "copy the shards that a node needs to its own disk", stage_command_run};
