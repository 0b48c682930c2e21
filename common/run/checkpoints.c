#include "common/run/checkpoints.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/system/file.h"

bool checkpoint_step(const char *name, int64_t *step)
{
    long long number;
    int used = 0;

    if (sscanf(name, "step-%lld%n", &number, &used) != 1 || name[used])
        return false;
    *step = number;
    return true;
}

static int checkpoints_newest_first(const struct dirent **a, const struct dirent **b)
{
    int64_t x = 0, y = 0;
    checkpoint_step((*a)->d_name, &x);
    checkpoint_step((*b)->d_name, &y);
    return (x < y) - (x > y);
}

static int checkpoints_is_checkpoint(const struct dirent *entry)
{
    int64_t step;
    return checkpoint_step(entry->d_name, &step);
}

int checkpoint_list(const char *checkpoints, struct dirent ***names, struct error *e)
{
    int count = scandir(checkpoints, names, checkpoints_is_checkpoint, checkpoints_newest_first);
    if (count >= 0)
        return count;
    *names = NULL;
    return errno == ENOENT
               ? 0
               : error_set_errno(e, errno, "cannot list the checkpoints in %s", checkpoints);
}

void checkpoint_list_free(struct dirent **names, int count)
{
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

static void checkpoint_remove(const char *checkpoints, const char *name)
{
    char path[PATH_MAX], hidden[PATH_MAX];
    struct error e;

    if (file_path(path, NULL, "%s/%s", checkpoints, name) ||
        file_path(hidden, NULL, "%s/.%s.tmp", checkpoints, name))
        return;
    if (file_remove_tree(rename(path, hidden) ? path : hidden, &e))
        log_warning("%s", e.text);
}

const json_t *checkpoint_best(const json_t *state)
{
    return json_object_get(json_object_get(state, CHECKPOINT_MONITOR), CHECKPOINT_BEST);
}

int checkpoint_place(const json_t *best, int64_t step)
{
    for (size_t i = 0; i < json_array_size(best); i++)
        if (json_integer_value(json_array_get(best, i)) == step)
            return (int)i + 1;
    return 0;
}

/* The state of the newest checkpoint up to the step. */
static json_t *checkpoints_newest_state(const char *checkpoints, struct dirent **names, int count,
                                        int64_t step)
{
    char path[PATH_MAX];
    struct error e;
    json_t *state = NULL;
    int64_t of = 0;

    for (int i = 0; i < count && !state; i++)
        if (checkpoint_step(names[i]->d_name, &of) && of <= step &&
            !file_path(path, &e, "%s/%s/state.json", checkpoints, names[i]->d_name))
            state = json_document_load(path, &e);
    return state;
}

void checkpoint_keep(const char *checkpoints, int64_t step, int64_t keep, bool later)
{
    struct dirent **names;
    struct error e;
    int count = checkpoint_list(checkpoints, &names, &e), kept = 0;
    int64_t of = 0;

    if (count < 0)
        log_warning("%s", e.text);
    json_t *state = checkpoints_newest_state(checkpoints, names, count, step);
    for (int i = 0; i < count; i++) {
        checkpoint_step(names[i]->d_name, &of);
        if (of > step ? later : kept++ >= keep && !checkpoint_place(checkpoint_best(state), of))
            checkpoint_remove(checkpoints, names[i]->d_name);
    }
    json_decref(state);
    checkpoint_list_free(names, count);
}

json_t *checkpoint_files(const json_t *state)
{
    json_t *files = json_object_get(state, "files"), *digest;
    const char *name;
    bool sound =
        json_object_get(files, CHECKPOINT_MODEL) && json_object_get(files, CHECKPOINT_OPTIMIZER);

    json_object_foreach (files, name, digest)
        sound = sound && !strchr(name, '/');
    return sound ? files : NULL;
}

void checkpoint_state_digest(const json_t *state, char hex[DIGEST_BYTES])
{
    json_t *rest = json_copy((json_t *)state);

    json_object_del(rest, "xxh128");
    char *text = json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    digest_text(text ? text : "", text ? strlen(text) : 0, hex);
    free(text);
    json_decref(rest);
}

static int checkpoint_is_unfinished(const struct dirent *entry)
{
    long long step;
    int used = 0;
    return sscanf(entry->d_name, ".step-%lld.tmp%n", &step, &used) == 1 && used > 0 &&
           entry->d_name[used] == '\0';
}

int checkpoint_remove_unfinished(const char *checkpoints, struct error *e)
{
    struct dirent **names;
    int count = scandir(checkpoints, &names, checkpoint_is_unfinished, alphasort), status = 0;

    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        int removed = file_path(path, e, "%s/%s", checkpoints, names[i]->d_name);
        if (!removed)
            removed = file_remove_tree(path, e);
        status = removed ? removed : status;
    }
    if (count >= 0)
        checkpoint_list_free(names, count);
    return status;
}
