#include "worker/save/state.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/digest.h"
#include "common/job/job_document.h"
#include "common/json.h"
#include "common/run/checkpoints.h"
#include "common/system/file.h"
#include "common/xalloc.h"
#include "config.h"

#define FORMAT 3 /* format of state.json; older formats had no digests */

static json_t *state_evaluation_to_json(const struct run_state *s)
{
    const struct evaluation *v = &s->evaluation;
    if (!s->evaluated)
        return json_null();
    return json_pack("{s:I, s:o, s:o, s:o, s:I, s:o}", "step", (json_int_t)s->evaluated_at, "top1",
                     json_number(v->top1), "top5", json_number(v->top5), "loss",
                     json_number_or_null(v->loss), "images", (json_int_t)v->images, "ttt_seconds",
                     json_number_or_null(s->ttt_seconds));
}

/* Job keys that must not change: if they differ, the checkpoint belongs to another job. */
static json_t *state_identity_of(const struct job_spec *spec)
{
    static const char *const pointers[][2] = {
        {"model",     "arch"      },
        {"model",     "stem"      },
        {"model",     "classes"   },
        {"model",     "image_size"},
        {"model",     "blur_pool" },
        {"model",     "freeze"    },
        {NULL,        "seed"      },
        {"optimizer", "name"      },
        {"data",      "shuffle"   },
        {NULL,        "loss"      },
    };
    json_t *job = job_spec_to_json(spec), *out = json_object();

    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++) {
        const char *group = pointers[i][0], *key = pointers[i][1];
        char name[64];
        snprintf(name, sizeof name, "%s%s%s", group ? group : "", group ? "." : "", key);
        json_object_set(out, name, json_object_get(group ? json_object_get(job, group) : job, key));
    }
    json_decref(job);
    return out;
}

static int state_add_digests(const char *folder, json_t *digests, struct error *e)
{
    static const char *const names[] = {CHECKPOINT_MODEL, CHECKPOINT_OPTIMIZER, CHECKPOINT_EMA};
    char path[PATH_MAX], hex[DIGEST_BYTES];
    int status = 0;

    for (size_t i = 0; !status && i < sizeof names / sizeof names[0]; i++) {
        file_path(path, NULL, "%s/%s", folder, names[i]);
        if (strcmp(names[i], CHECKPOINT_EMA) == 0 && access(path, F_OK))
            continue;
        status = digest_file(path, hex, e);
        if (!status)
            json_object_set_new(digests, names[i], json_string(hex));
    }
    return status;
}

static json_t *state_to_json(const struct run_state *s, const struct job_spec *spec)
{
    char tuning[TUNING_TEXT_BYTES];

    model_tuning_to_text(&s->tuning, tuning);
    return json_pack(
        "{s:i, s:s, s:o, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:I, "
        "s:o, s:b, s:o, s:s, s:s, s:s, s:o, s:o}",
        "format", FORMAT, "version", PACKAGE_VERSION, "job", state_identity_of(spec), "step",
        (json_int_t)s->step, "epoch", json_number(s->epochs_done), "schedule_step",
        (json_int_t)s->schedule_step, "epoch_number", (json_int_t)s->epoch, "epoch_images",
        (json_int_t)s->epoch_images, "images_seen", (json_int_t)s->images_seen, "global_batch",
        (json_int_t)s->global_batch, "world_size", (json_int_t)s->world_size, "threads_per_worker",
        (json_int_t)s->threads, "steps_per_epoch", (json_int_t)s->steps_per_epoch, "train_images",
        (json_int_t)s->train_images, "peak_lr", json_number(s->peak_lr), "lr", json_number(s->lr),
        "bad_images", (json_int_t)s->bad_images, "run_started", json_number(s->run_started),
        "target_reached", s->target_reached, "evaluation", state_evaluation_to_json(s), "winograd",
        tuning, "losses", s->losses.hex, "evaluations", s->evaluations.hex, "train_seconds",
        json_number_or_null(s->train_seconds), CHECKPOINT_MONITOR,
        monitor_to_json(&s->monitor, spec));
}

int run_state_write(const struct run_state *s, const struct job_spec *spec, const char *folder,
                    json_t *digests, struct error *e)
{
    char path[PATH_MAX], hex[DIGEST_BYTES];
    int status = state_add_digests(folder, digests, e);
    if (status)
        return status;
    json_t *state = must_alloc(state_to_json(s, spec));
    json_object_set(state, "files", digests);
    checkpoint_state_digest(state, hex);
    json_object_set_new(state, "xxh128", json_string(hex));
    /* 17 digits, because the learning rate of the last step determines the next one exactly. */
    char *text = must_alloc(json_dumps(state, JSON_INDENT(2) | JSON_REAL_PRECISION(17)));
    file_path(path, NULL, "%s/state.json", folder);
    status = file_write_atomic(path, text, strlen(text), e);
    free(text);
    json_decref(state);
    return status;
}

static int state_differs(const json_t *wanted, const char *hex)
{
    const char *text = json_string_value(wanted);
    return !text || strcmp(text, hex) != 0;
}

static int state_check_self(const json_t *state, const char *folder, struct error *e)
{
    char hex[DIGEST_BYTES];

    checkpoint_state_digest(state, hex);
    if (!state_differs(json_object_get(state, "xxh128"), hex))
        return 0;
    return error_set(e, ERR_CORRUPT,
                     "checkpoint %s is damaged: state.json has been changed since it was written",
                     folder);
}

static int state_check_file(const json_t *wanted, const char *name, const char *folder,
                            struct error *e)
{
    char path[PATH_MAX], hex[DIGEST_BYTES];

    file_path(path, NULL, "%s/%s", folder, name);
    if (digest_file(path, hex, e)) {
        error_prefix(e, "checkpoint %s is damaged", folder);
        return -(int)(e->code = ERR_CORRUPT);
    }
    if (!state_differs(wanted, hex))
        return 0;
    return error_set(e, ERR_CORRUPT,
                     "checkpoint %s is damaged: the xxh128 of %s does not match state.json", folder,
                     name);
}

static int state_check_files(const json_t *state, const char *folder, struct error *e)
{
    json_t *files = checkpoint_files(state), *wanted;
    const char *name;
    int status = files ? 0 : state_check_file(NULL, CHECKPOINT_MODEL, folder, e);

    json_object_foreach (files, name, wanted)
        if (!status)
            status = state_check_file(wanted, name, folder, e);
    return status;
}

static int state_check_identity(const json_t *state, const struct job_spec *spec, const char *path,
                                struct error *e)
{
    json_t *mine = state_identity_of(spec), *theirs = json_object_get(state, "job"), *value;
    json_t *older = json_pack("{s:s, s:b, s:[]}", "loss", "cross_entropy", "model.blur_pool", 0,
                              "model.freeze"); /* without these keys */
    const char *key;
    int status = 0;

    json_object_update_missing(theirs, older);
    json_decref(older);
    json_object_foreach (mine, key, value) {
        json_t *other = json_object_get(theirs, key);
        if (json_equal(value, other))
            continue;
        char *now = json_dumps(value, JSON_ENCODE_ANY);
        char *then = other ? json_dumps(other, JSON_ENCODE_ANY) : NULL;
        status = error_set(e, ERR_CONFLICT,
                           "%s belongs to a different job: its %s is %s, but this job's is %s",
                           path, key, then ? then : "missing", now ? now : "?");
        free(now);
        free(then);
        break;
    }
    json_decref(mine);
    return status;
}

static int state_read_numbers(json_t *state, struct run_state *s)
{
    json_int_t step, schedule, epoch, images, seen, batch, world, threads, per_epoch, train, bad;
    const char *tuning, *name;
    json_t *digest;
    int target;

    if (json_unpack(state,
                    "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:F, s:F, s:I, s:F, s:b}",
                    "step", &step, "schedule_step", &schedule, "epoch_number", &epoch,
                    "epoch_images", &images, "images_seen", &seen, "global_batch", &batch,
                    "world_size", &world, "threads_per_worker", &threads, "steps_per_epoch",
                    &per_epoch, "train_images", &train, "peak_lr", &s->peak_lr, "lr", &s->lr,
                    "bad_images", &bad, "run_started", &s->run_started, "target_reached", &target))
        return -1;
    if (step < 1 || schedule < 0 || epoch < 0 || images < 0 || seen < 1 || batch < 1 || world < 1 ||
        threads < 1 || per_epoch < 1 || train < 1 || images > train)
        return -1;
    /* Older checkpoints do not have this member. */
    tuning = json_string_value(json_object_get(state, "winograd"));
    if (tuning && model_tuning_from_text(tuning, &s->tuning))
        return -1;
    digest_chain_resume(&s->losses, json_get_text(state, "losses", NULL));
    digest_chain_resume(&s->evaluations, json_get_text(state, "evaluations", NULL));
    s->step = step;
    s->schedule_step = schedule;
    s->epoch = epoch;
    s->epoch_images = images;
    s->images_seen = seen;
    s->train_seconds = json_get_number(state, "train_seconds", NAN);
    s->global_batch = batch;
    s->world_size = world;
    s->threads = threads;
    s->steps_per_epoch = per_epoch;
    s->train_images = train;
    s->bad_images = bad;
    s->target_reached = target;
    json_object_foreach (checkpoint_files(state), name, digest)
        s->has_statistics |= strncmp(name, "statistics", strlen("statistics")) == 0;
    return 0;
}

static void state_read_evaluation(const json_t *state, struct run_state *s)
{
    const json_t *v = json_object_get(state, "evaluation");

    s->evaluated = json_is_object(v);
    s->evaluated_at = s->evaluated ? json_integer_value(json_object_get(v, "step")) : -1;
    s->ttt_seconds = json_get_number(v, "ttt_seconds", NAN);
    s->evaluation = (struct evaluation){
        .top1 = json_get_number(v, "top1", NAN),
        .top5 = json_get_number(v, "top5", NAN),
        .loss = json_get_number(v, "loss", NAN),
        .images = json_integer_value(json_object_get(v, "images")),
    };
}

int run_state_read(const char *folder, const struct job_spec *spec, struct run_state *s,
                   struct error *e)
{
    char path[PATH_MAX];

    *s = (struct run_state){0};
    file_path(path, NULL, "%s/state.json", folder);
    json_t *state = json_document_load(path, e);
    if (!state && e->code == ERR_NOT_FOUND)
        return error_set(e, ERR_NOT_FOUND, "%s is not a checkpoint: it has no state.json", folder);
    if (!state)
        return error_prefix(e, "checkpoint %s is damaged", folder);
    int status = 0;
    if (json_integer_value(json_object_get(state, "format")) != FORMAT)
        status = error_set(e, ERR_CONFLICT,
                           "%s was written by a version whose checkpoints cannot be resumed "
                           "(expected format %d); model.init can load its weights",
                           path, FORMAT);
    if (!status)
        status = state_check_self(state, folder, e);
    if (!status)
        status = state_check_identity(state, spec, path, e);
    if (!status)
        status = state_check_files(state, folder, e);
    if (!status && state_read_numbers(state, s))
        status = error_set(e, ERR_CORRUPT, "%s has a missing or invalid number", path);
    if (!status) {
        state_read_evaluation(state, s);
        monitor_from_json(&s->monitor, json_object_get(state, CHECKPOINT_MONITOR), spec);
    }
    json_decref(state);
    return status;
}

enum { NUMBERS_MAX = 8 };

void digest_chain_add(struct digest_chain *c, const double *numbers, int count)
{
    char link[DIGEST_BYTES + NUMBERS_MAX * sizeof(double)];
    size_t before = strlen(c->hex), bytes = (size_t)count * sizeof *numbers;

    if (count > NUMBERS_MAX || strcmp(c->hex, CHAIN_UNKNOWN) == 0)
        return;
    memcpy(link, c->hex, before);
    memcpy(link + before, numbers, bytes);
    digest_text(link, before + bytes, c->hex);
}

void digest_chain_resume(struct digest_chain *c, const char *text)
{
    bool whole = text && strspn(text, "0123456789abcdef") == DIGEST_BYTES - 1 &&
                 strlen(text) == DIGEST_BYTES - 1;
    bool nothing = text && !*text;

    snprintf(c->hex, sizeof c->hex, "%s", whole ? text : nothing ? "" : CHAIN_UNKNOWN);
}

const char *digest_chain_text(const struct digest_chain *c)
{
    return *c->hex && strcmp(c->hex, CHAIN_UNKNOWN) != 0 ? c->hex : NULL;
}

static int state_find_named(const char *from, const struct job_spec *spec, char path[PATH_MAX],
                            struct run_state *state, struct error *e)
{
    if (!realpath(from, path)) {
        path[0] = '\0';
        return error_set(e, ERR_NOT_FOUND,
                         "checkpoint %s does not exist: --resume takes a checkpoint folder, for "
                         "example checkpoints/step-00000520, or latest",
                         from);
    }
    int status = run_state_read(path, spec, state, e);
    struct error what = *e;
    if (status == -ERR_CORRUPT)
        return error_set(e, ERR_CORRUPT, "%s; --resume latest uses the newest intact one",
                         what.text);
    return status;
}

static int state_find_latest(const char *run_dir, const struct job_spec *spec, char path[PATH_MAX],
                             struct run_state *state, json_t *warnings, struct error *e)
{
    char checkpoints[PATH_MAX];
    struct dirent **names;
    struct error first;
    int status = 0;

    file_path(checkpoints, NULL, "%s/checkpoints", run_dir);
    int count = checkpoint_list(checkpoints, &names, e);
    if (count < 0)
        return count;
    for (int i = 0; i < count; i++) {
        status = file_path(path, e, "%s/%s", checkpoints, names[i]->d_name);
        if (!status)
            status = run_state_read(path, spec, state, e);
        if (!status)
            break;
        path[0] = '\0';
        json_array_append_new(warnings, json_sprintf("%s; trying an older one", e->text));
        if (i == 0)
            first = *e;
    }
    checkpoint_list_free(names, count);
    if (count == 0)
        json_array_append_new(
            warnings,
            json_sprintf("no checkpoint in %s: starting from the beginning", checkpoints));
    if (!status)
        return 0;
    *e = first;
    return error_prefix(e, "none of the %d checkpoints in %s can be resumed", count, checkpoints);
}

int run_state_find(const char *run_dir, const char *from, const struct job_spec *spec,
                   char path[PATH_MAX], struct run_state *state, json_t *warnings, struct error *e)
{
    path[0] = '\0';
    if (strcmp(from, "latest") == 0)
        return state_find_latest(run_dir, spec, path, state, warnings, e);
    return state_find_named(from, spec, path, state, e);
}
