#include "daemon/job/run_dir.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/json.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "common/system/file.h"
#include "daemon/store/job_insert.h"
#include "daemon/store/store_open.h"

#define OWNER                "owner.json"
#define OWNER_BYTES          4096
#define RUN_FILE_LIMIT_BYTES ((size_t)16 << 20) /* of job.json and plan.json */
#define HIGHEST_ID           1000000000000      /* larger numbers are not job ids */

/* ---------------------------------------------------------------- owner.json */

struct owner {
    char store[64];
    json_int_t job;
    double created_at;
};

static int run_dir_read_owner(const char *run_dir, struct owner *owner, struct error *e)
{
    char path[PATH_MAX], *text;
    const char *store;
    size_t bytes;
    int status = file_path(path, e, "%s/" OWNER, run_dir);

    if (!status)
        status = file_read(path, OWNER_BYTES, &text, &bytes, e);
    if (status)
        return status;
    json_t *json = json_loadb(text, bytes, 0, NULL);
    free(text);
    if (json_unpack(json, "{s:s, s:I, s:F}", "store", &store, "job", &owner->job, "created_at",
                    &owner->created_at))
        status = error_set(e, ERR_CORRUPT, "%s does not name its job", path);
    else
        snprintf(owner->store, sizeof owner->store, "%s", store);
    json_decref(json);
    return status;
}

static int run_dir_write_owner(struct store *s, const struct store_job *job, const char *folder,
                               struct error *e)
{
    char path[PATH_MAX];
    json_t *json =
        must_alloc(json_pack("{s:s, s:I, s:o}", "store", store_identity(s)->uuid, "job",
                             (json_int_t)job->id, "created_at", json_number(job->created_at)));
    char *text = must_alloc(json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(17)));
    int status = file_path(path, e, "%s/" OWNER, folder);

    if (!status)
        status = file_write_atomic(path, text, strlen(text), e);
    free(text);
    json_decref(json);
    return status;
}

/* ---------------------------------------------------------------- one directory */

/* Compares submission times, not databases: a database migrated from an older version's backup has
 * a new name but the same jobs. */
static bool run_dir_is_of(const struct owner *owner, const struct store_job *job)
{
    return owner->job == job->id && fabs(owner->created_at - job->created_at) < 1e-6;
}

static void run_dir_say_foreign(struct store *s, const struct store_job *job,
                                const struct owner *owner, struct error *e)
{
    char when[64] = "";
    time_t at = (time_t)owner->created_at;
    struct tm tm;

    if (gmtime_r(&at, &tm))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &tm);
    error_set(
        e, ERR_CONFLICT,
        "the run directory %s belongs to another job %lld, submitted %s, %s: it is left alone",
        job->run_dir, (long long)owner->job, when,
        strcmp(owner->store, store_identity(s)->uuid) == 0
            ? "which this database does not know (was it restored from a backup?)"
            : "of another database");
}

enum run_dir run_dir_look(struct store *s, const struct store_job *job, struct error *e)
{
    struct owner owner;
    struct error why;
    struct stat st;

    if (stat(job->run_dir, &st)) {
        error_set_errno(e, errno, "the run directory of job %lld is missing: %s",
                        (long long)job->id, job->run_dir);
        return RUN_DIR_MISSING;
    }
    int status = run_dir_read_owner(job->run_dir, &owner, &why);
    if (status == 0 && run_dir_is_of(&owner, job))
        return RUN_DIR_OWN;
    if (status == 0) {
        run_dir_say_foreign(s, job, &owner, e);
    } else if (status == -(int)ERR_NOT_FOUND) {
        if (job->id <= store_identity(s)->unmarked)
            return RUN_DIR_OWN;
        error_set(e, ERR_CONFLICT,
                  "the run directory %s was not made for job %lld (it has no " OWNER
                  "): it is left alone",
                  job->run_dir, (long long)job->id);
    } else {
        error_set(e, why.code, "cannot determine the owner of the run directory %s: %s",
                  job->run_dir, why.text);
        return RUN_DIR_UNKNOWN;
    }
    return RUN_DIR_FOREIGN;
}

int run_dir_check(struct store *s, const struct store_job *job, struct error *e)
{
    struct error why = {0};
    enum run_dir found = run_dir_look(s, job, &why);

    if (found == RUN_DIR_OWN || (found == RUN_DIR_MISSING && job->attempt == 0))
        return 0;
    *e = why;
    return -(int)e->code;
}

/* Creates it under another name and renames it, so that a killed daemon never leaves one without
 * owner.json. */
static int run_dir_make(struct store *s, const struct store_job *job, struct error *e)
{
    char fresh[PATH_MAX], parent[PATH_MAX];
    struct error why;

    snprintf(parent, sizeof parent, "%s", job->run_dir);
    char *slash = strrchr(parent, '/');
    if (slash)
        *slash = '\0';
    int status = file_path(fresh, e, "%s/.new-%lld", parent, (long long)job->id);
    if (!status)
        status = file_remove_tree(fresh, e);
    if (!status)
        status = file_make_dirs_unsynced(fresh, e);
    if (!status)
        status = run_dir_write_owner(s, job, fresh, e);
    if (!status && rename(fresh, job->run_dir))
        status = error_set_errno(e, errno, "cannot create the folder %s", job->run_dir);
    if (!status)
        file_sync_dir_of(job->run_dir);
    else
        file_remove_tree(fresh, &why);
    return status;
}

int run_dir_mark(struct store *s, const struct store_job *job, struct error *e)
{
    return run_dir_write_owner(s, job, job->run_dir, e);
}

int run_dir_claim(struct store *s, const struct store_job *job, struct error *e)
{
    struct error why = {0};
    char owner[PATH_MAX];

    switch (run_dir_look(s, job, &why)) {
    case RUN_DIR_OWN:
        file_path(owner, &why, "%s/" OWNER, job->run_dir);
        return access(owner, F_OK) == 0 ? 0 : run_dir_write_owner(s, job, job->run_dir, e);
    case RUN_DIR_MISSING:
        if (job->attempt > 0)
            log_warning("%s; creating it again", why.text);
        return run_dir_make(s, job, e);
    default:
        *e = why;
        return -(int)e->code;
    }
}

/* Does not sync the file: the database has the text, and the file is compared before each start. */
static int run_dir_write_if_other(const char *run_dir, const char *name, const char *text,
                                  struct error *e)
{
    char path[PATH_MAX], *there = NULL;
    size_t bytes;

    if (file_path(path, e, "%s/%s", run_dir, name))
        return -(int)e->code;
    bool same = file_read(path, RUN_FILE_LIMIT_BYTES, &there, &bytes, NULL) == 0 &&
                bytes == strlen(text) && memcmp(there, text, bytes) == 0;
    free(there);
    return same ? 0 : file_write_unsynced(path, text, strlen(text), e);
}

static int run_dir_link_files(const char *from, const char *to, struct error *e)
{
    DIR *folder = opendir(from);
    const struct dirent *entry;
    char source[PATH_MAX], target[PATH_MAX];
    int status =
        folder ? file_make_dirs_unsynced(to, e) : error_set_errno(e, errno, "cannot read %s", from);

    while (!status && (entry = readdir(folder))) {
        if (*entry->d_name == '.')
            continue;
        if (file_path(source, e, "%s/%s", from, entry->d_name) ||
            file_path(target, e, "%s/%s", to, entry->d_name))
            status = -(int)e->code;
        else if (entry->d_type == DT_DIR)
            status = run_dir_link_files(source, target, e);
        else if (link(source, target))
            status = error_set_errno(e, errno, "cannot link %s to %s", target, source);
    }
    if (folder)
        closedir(folder);
    return status;
}

/* Gives a job its own links to the checkpoints of the one that it continues, if there are any. */
static int run_dir_continue(const struct store_job *job, struct error *e)
{
    int64_t before = json_get_integer(store_job_spec(job), "continues", 0);
    char from[PATH_MAX], fresh[PATH_MAX], to[PATH_MAX];

    if (before <= 0)
        return 0;
    if (file_path(to, e, "%s/checkpoints", job->run_dir) ||
        file_path(fresh, e, "%s/.checkpoints-new", job->run_dir) ||
        file_path(from, e, "%s/../%lld/checkpoints", job->run_dir, (long long)before))
        return -(int)e->code;
    if (access(to, F_OK) == 0 || access(from, F_OK) != 0)
        return 0;
    int status = file_remove_tree(fresh, e);
    if (!status)
        status = run_dir_link_files(from, fresh, e);
    if (!status && rename(fresh, to))
        status = error_set_errno(e, errno, "cannot rename %s", fresh);
    return status;
}

int run_dir_prepare(struct store *s, const struct store_job *job, struct error *e)
{
    int status = run_dir_claim(s, job, e);

    if (!status)
        status = run_dir_write_if_other(job->run_dir, "job.json", job->spec, e);
    if (!status)
        status = run_dir_write_if_other(job->run_dir, "plan.json", job->plan, e);
    return status ? status : run_dir_continue(job, e);
}

int64_t run_dir_last_attempt(const char *run_dir)
{
    DIR *folder = opendir(run_dir);
    const struct dirent *entry;
    long long number, last = 0;
    int used;

    while (folder && (entry = readdir(folder))) {
        used = 0;
        if (sscanf(entry->d_name, "attempt-%lld%n", &number, &used) == 1 && !entry->d_name[used] &&
            number > last && number < HIGHEST_ID)
            last = number;
    }
    if (folder)
        closedir(folder);
    return last;
}

/* ---------------------------------------------------------------- all run directories */

/* Formats as "3, 7, 8 and 12 more". */
struct id_list {
    char text[160];
    int64_t count, named;
};

static void run_dir_id_list_add(struct id_list *list, int64_t id)
{
    size_t used = strlen(list->text);

    list->count++;
    if (list->named < 8) {
        list->named++;
        snprintf(list->text + used, sizeof list->text - used, "%s%lld", used ? ", " : "",
                 (long long)id);
    }
}

static const char *run_dir_id_list_text(struct id_list *list)
{
    size_t used = strlen(list->text);

    if (list->count > list->named)
        snprintf(list->text + used, sizeof list->text - used, " and %lld more",
                 (long long)(list->count - list->named));
    return list->text;
}

struct survey {
    int64_t *ids; /* of the directories, ascending */
    size_t count, capacity, at;
    int64_t highest; /* also counts directories being removed */
    struct id_list without_job, without_folder;
};

static int run_dir_compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int run_dir_list_folders(const char *jobs_dir, struct survey *v, struct error *e)
{
    DIR *folder = opendir(jobs_dir);
    const struct dirent *entry;
    int status = folder ? 0 : error_set_errno(e, errno, "cannot read %s", jobs_dir);

    while (!status && folder && (entry = readdir(folder))) {
        const char *name = entry->d_name;
        bool removed = *name == '.';
        char *end;
        if (removed)
            name = strchr(name, '-') ? strchr(name, '-') + 1 : "";
        int64_t id = strtoll(name, &end, 10);
        if (*name < '1' || *name > '9' || *end || id > HIGHEST_ID)
            continue;
        if (id > v->highest)
            v->highest = id;
        if (!removed)
            array_add(v->ids, v->count, v->capacity) = id;
    }
    if (folder)
        closedir(folder);
    if (!status && v->count)
        qsort(v->ids, v->count, sizeof v->ids[0], run_dir_compare_ids);
    return status;
}

static void run_dir_compare_with_job(void *context, int64_t id, bool launched)
{
    struct survey *v = context;

    while (v->at < v->count && v->ids[v->at] < id)
        run_dir_id_list_add(&v->without_job, v->ids[v->at++]);
    if (v->at < v->count && v->ids[v->at] == id)
        v->at++;
    else if (launched)
        run_dir_id_list_add(&v->without_folder, id);
}

int run_dirs_survey(struct store *s, const char *jobs_dir, struct error *e)
{
    struct survey v = {0};
    int status = run_dir_list_folders(jobs_dir, &v, e);

    if (!status && v.highest)
        status = store_job_ids_above(s, v.highest, e);
    if (!status)
        status = store_job_each_id(s, run_dir_compare_with_job, &v, e);
    while (!status && v.at < v.count)
        run_dir_id_list_add(&v.without_job, v.ids[v.at++]);
    free(v.ids);
    if (status)
        return status;
    if (v.without_job.count)
        log_warning("%s has run directories that the database has no job for: %s. They are left "
                    "alone; new jobs get ids above %lld",
                    jobs_dir, run_dir_id_list_text(&v.without_job), (long long)v.highest);
    if (v.without_folder.count)
        log_warning("the run directories of these jobs are missing in %s: %s. Their logs and "
                    "checkpoints are not available",
                    jobs_dir, run_dir_id_list_text(&v.without_folder));
    return 0;
}
