#include "common/run/weights.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/buffer.h"
#include "common/json.h"
#include "common/net/arch.h"
#include "common/run/checkpoints.h"
#include "common/system/file.h"
#include "common/system/open_beneath.h"
#include "common/xalloc.h"

enum { NAMED_AT_MOST = 10, NAME_BYTES = 96 };

#define MODEL_FILE "model.safetensors"

static bool weights_exist(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    return !file_path(path, NULL, "%s/%s", folder, name) && open_beneath_stat(path, &st, NULL) == 0;
}

/* state.json is written last and contains its own digest. *best gets the step of the best
 * checkpoint that it names, or 0. */
static bool weights_checkpoint_is_whole(const char *checkpoint, int64_t *best)
{
    char path[PATH_MAX], digest[DIGEST_BYTES] = "";
    struct error e;

    if (!weights_exist(checkpoint, MODEL_FILE) ||
        file_path(path, NULL, "%s/state.json", checkpoint))
        return false;
    json_t *state = json_read_fd(open_beneath_file(path, &e), path, JSON_DOCUMENT_LIMIT_BYTES, &e);
    const char *stored = json_string_value(json_object_get(state, "xxh128"));
    if (stored)
        checkpoint_state_digest(state, digest);
    bool whole = stored && strcmp(stored, digest) == 0;
    *best = json_integer_value(json_array_get(checkpoint_best(state), 0));
    json_decref(state);
    return whole;
}

static bool weights_take(const char *checkpoints, const char *name, char path[PATH_MAX],
                         int64_t *best)
{
    char folder[PATH_MAX];

    return !file_path(folder, NULL, "%s/%s", checkpoints, name) &&
           weights_checkpoint_is_whole(folder, best) &&
           !file_path(path, NULL, "%s/" MODEL_FILE, folder);
}

/* Finds the newest complete checkpoint, or the best one if the newest names it. */
static int weights_find_newest(const char *checkpoints, char path[PATH_MAX], struct error *e)
{
    struct dirent **names;
    char newest[PATH_MAX], name[32];
    int64_t best = 0;
    bool found = false;
    int count = checkpoint_list(checkpoints, &names, e);

    if (count < 0)
        return count;
    for (int i = 0; i < count && !found; i++)
        found = weights_take(checkpoints, names[i]->d_name, newest, &best);
    checkpoint_list_free(names, count);
    snprintf(name, sizeof name, "step-%08lld", (long long)best);
    if (found && (best == 0 || !weights_take(checkpoints, name, path, &best)))
        memcpy(path, newest, sizeof newest);
    if (found)
        return 0;
    return error_set(
        e, ERR_INVALID,
        "no weights in %s: expected a safetensors file, the folder of a checkpoint (with "
        "model.safetensors in it), or a run directory with a complete checkpoint",
        checkpoints);
}

static int weights_find(const char *init, char path[PATH_MAX], struct error *e)
{
    char checkpoints[PATH_MAX];
    struct stat st;
    int status = open_beneath_stat(init, &st, e);

    if (status)
        return status;
    if (!S_ISDIR(st.st_mode) || weights_exist(init, MODEL_FILE))
        return file_path(path, e, S_ISDIR(st.st_mode) ? "%s/" MODEL_FILE : "%s", init);
    if (weights_exist(init, "checkpoints") && !file_path(checkpoints, NULL, "%s/checkpoints", init))
        return weights_find_newest(checkpoints, path, e);
    return weights_find_newest(init, path, e);
}

int weights_open(const char *init, char path[PATH_MAX], struct safetensors **out, struct error *e)
{
    int status = weights_find(init, path, e);

    if (status)
        return status;
    int fd = open_beneath_file(path, e);
    status = fd < 0 ? fd : safetensors_open_fd(fd, path, out, e);
    /* of torch.compile and DistributedDataParallel, in any order */
    while (!status && (safetensors_strip(*out, "_orig_mod.") || safetensors_strip(*out, "module.")))
        ;
    return status;
}

int64_t weights_step(const struct safetensors *file)
{
    const char *text = safetensors_metadata(file, "step");
    char *end;
    long long step = text ? strtoll(text, &end, 10) : 0;

    return text && end != text && !*end && step > 0 ? step : 0;
}

struct complaint {
    char text[1600];
    int count;
    struct problems *rest; /* NULL: mismatches are only counted */
};

static void __attribute__((format(printf, 2, 3)))
complain(struct complaint *c, const char *format, ...)
{
    size_t used = strlen(c->text);
    char words[2 * NAME_BYTES + 256];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    if (c->count++ < NAMED_AT_MOST)
        snprintf(c->text + used, sizeof c->text - used, "%s%s", used ? "; " : "", words);
    else if (c->rest)
        problems_add(c->rest, "/model/init", NULL, "%s", words);
}

static const char *weights_shape_text(const struct safetensors_tensor *t, char text[96])
{
    size_t used = 1;
    text[0] = '(';
    text[1] = '\0';
    for (int i = 0; i < t->dims && used < 80; i++)
        used += (size_t)snprintf(text + used, 96 - used, "%s%lld", i ? ", " : "",
                                 (long long)t->shape[i]);
    snprintf(text + used, 96 - used, ")");
    return text;
}

static bool weights_same_shape(const struct safetensors_tensor *a,
                               const struct safetensors_tensor *b)
{
    return a->dims == b->dims && !memcmp(a->shape, b->shape, (size_t)a->dims * sizeof a->shape[0]);
}

static bool weights_is_float(const struct safetensors_tensor *t)
{
    return t->dtype != SAFETENSORS_I64;
}

static bool weights_is_of(const char *name, const char *layer)
{
    size_t length = layer ? strlen(layer) : 0;

    return length && strncmp(name, layer, length) == 0 && name[length] == '.';
}

/* Whether the tensors of a classifier differ in nothing but the number of classes. */
static bool weights_has_other_classes(const struct safetensors_tensor *have,
                                      const struct safetensors_tensor *want)
{
    return (weights_is_of(want->name, "fc") || weights_is_of(want->name, "fc2")) &&
           have->dims == want->dims && have->shape[0] != want->shape[0] &&
           (have->dims == 1 || have->shape[1] == want->shape[1]);
}

static void weights_check_tensor(const struct safetensors *file,
                                 const struct safetensors_tensor *want, struct complaint *c)
{
    const struct safetensors_tensor *have = safetensors_find(file, want->name);
    char there[96], here[96];

    if (!have) {
        if (want->dtype == SAFETENSORS_F32)
            complain(c, "%s is missing", want->name);
    } else if (weights_is_float(have) != weights_is_float(want)) {
        complain(c, "%s has dtype %s instead of %s", want->name,
                 safetensors_dtype_name(have->dtype),
                 weights_is_float(want) ? "F32, F16 or BF16" : "I64");
    } else if (weights_has_other_classes(have, want)) {
        complain(c, "%s is for %lld classes, the job has %lld (set model.classes to %lld)",
                 want->name, (long long)have->shape[0], (long long)want->shape[0],
                 (long long)have->shape[0]);
    } else if (!weights_same_shape(have, want)) {
        complain(c, "%s has shape %s instead of %s", want->name, weights_shape_text(have, there),
                 weights_shape_text(want, here));
    }
}

static bool weights_is_wanted(const struct safetensors_tensor *wanted, size_t count,
                              const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(wanted[i].name, name))
            return true;
    return false;
}

int weights_compare(const struct safetensors *file, const struct safetensors_tensor *wanted,
                    size_t count, const char *path, const char *arch, bool blur_pool,
                    const char *classifier, struct problems *rest, struct error *e)
{
    struct complaint c = {.rest = rest};
    const char *blurred = safetensors_metadata(file, WEIGHTS_BLUR_POOL);

    if (blurred && (strcmp(blurred, "true") == 0) != blur_pool)
        complain(&c, "they were trained with model.blur_pool %.8s", blurred);
    for (size_t i = 0; i < count; i++)
        if (!weights_is_of(wanted[i].name, classifier))
            weights_check_tensor(file, &wanted[i], &c);
    for (size_t i = 0; i < safetensors_tensors(file); i++)
        if (!weights_is_of(safetensors_at(file, i)->name, classifier) &&
            !weights_is_wanted(wanted, count, safetensors_at(file, i)->name))
            complain(&c, "%.100s is not part of this model", safetensors_at(file, i)->name);
    if (!c.count)
        return 0;
    if (c.count > NAMED_AT_MOST)
        return error_set(e, ERR_INVALID, "the weights of %s do not match %s: %s; and %d more", path,
                         arch, c.text, c.count - NAMED_AT_MOST);
    return error_set(e, ERR_INVALID, "the weights of %s do not match %s: %s", path, arch, c.text);
}

struct listing {
    struct safetensors_tensor *tensors;
    char (*names)[NAME_BYTES];
    size_t count, capacity;
};

static void weights_list_tensor(struct listing *l, const char *layer, const char *part,
                                enum safetensors_dtype dtype, int dims, const int64_t shape[4])
{
    const struct array arrays[] = {ARRAY(l->tensors), ARRAY(l->names)};

    if (!arrays_grow(arrays, 2, l->count, &l->capacity))
        must_alloc(NULL);
    struct safetensors_tensor *t = &l->tensors[l->count];
    *t = (struct safetensors_tensor){.dtype = dtype, .dims = dims};
    memcpy(t->shape, shape, (size_t)dims * sizeof *shape);
    snprintf(l->names[l->count++], NAME_BYTES, "%.60s.%s", layer, part);
}

static void weights_list_conv(const struct arch_conv *c, void *context)
{
    static const char *const channels[] = {"weight", "bias", "running_mean", "running_var"};
    struct listing *l = context;

    weights_list_tensor(
        l, c->name, "weight", SAFETENSORS_F32, 4,
        (int64_t[]){c->out_channels, c->in_channels / c->groups, c->kernel, c->kernel});
    if (!*c->bn_name) {
        weights_list_tensor(l, c->name, "bias", SAFETENSORS_F32, 1,
                            (int64_t[]){c->out_channels, 0, 0, 0});
        return;
    }
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
        weights_list_tensor(l, c->bn_name, channels[i], SAFETENSORS_F32, 1,
                            (int64_t[]){c->out_channels, 0, 0, 0});
    weights_list_tensor(l, c->bn_name, "num_batches_tracked", SAFETENSORS_I64, 0, (int64_t[4]){0});
}

static void weights_list_network(struct listing *l, const struct job_spec *spec)
{
    struct arch_shape shape = arch_shape_of(spec);
    struct arch_linear linears[ARCH_LINEARS];
    int count = arch_linears(&shape, linears);

    arch_each_conv(&shape, weights_list_conv, l);
    for (int i = 0; i < count; i++) {
        int64_t sizes[4] = {linears[i].out, linears[i].in};
        weights_list_tensor(l, linears[i].name, "weight", SAFETENSORS_F32, 2, sizes);
        weights_list_tensor(l, linears[i].name, "bias", SAFETENSORS_F32, 1, sizes);
    }
    for (size_t i = 0; i < l->count; i++)
        l->tensors[i].name = l->names[i]; /* the array does not move any more */
}

const char *weights_new_classifier(const struct job_spec *spec, const struct safetensors *file,
                                   char text[ERROR_TEXT_BYTES])
{
    struct arch_linear linears[ARCH_LINEARS];
    const struct safetensors_tensor *have[2];
    bool absent = true, other = true;

    if (!file || spec->mode == JOB_MODE_EVAL)
        return NULL;
    struct arch_shape shape = arch_shape_of(spec);
    const struct arch_linear *last = &linears[arch_linears(&shape, linears) - 1];
    for (int i = 0; i < 2; i++) {
        char name[NAME_BYTES];
        struct safetensors_tensor want = {
            .name = name, .dims = 2 - i, .shape = {last->out, last->in}
        };
        snprintf(name, sizeof name, "%s.%s", last->name, i ? "bias" : "weight");
        have[i] = safetensors_find(file, name);
        absent = absent && !have[i];
        other = other && have[i] && weights_has_other_classes(have[i], &want);
    }
    if (absent)
        snprintf(text, ERROR_TEXT_BYTES,
                 "the weights of model.init have no classifier (%s): it starts with random weights",
                 last->name);
    else if (other)
        snprintf(text, ERROR_TEXT_BYTES,
                 "the weights of model.init have a classifier (%s) for %lld classes, the job has "
                 "%d: it starts with random weights",
                 last->name, (long long)have[0]->shape[0], last->out);
    return absent || other ? last->name : NULL;
}

static int weights_compare_network(const struct safetensors *file, const struct job_spec *spec,
                                   const char *path, const char *classifier, struct problems *rest,
                                   struct error *e)
{
    struct listing l = {0};

    weights_list_network(&l, spec);
    int status = weights_compare(file, l.tensors, l.count, path, spec->model.arch,
                                 spec->model.blur_pool, classifier, rest, e);
    free(l.tensors);
    free(l.names);
    return status;
}

int weights_check_network(const struct safetensors *file, const struct job_spec *spec,
                          const char *path, struct error *e)
{
    return weights_compare_network(file, spec, path, NULL, NULL, e);
}

static int weights_check_file(const struct job_spec *spec, struct problems *rest, struct error *e)
{
    struct safetensors *file;
    char path[PATH_MAX], text[ERROR_TEXT_BYTES];
    int status = weights_open(spec->model.init, path, &file, e);

    if (status)
        return status;
    status = weights_compare_network(file, spec, path, weights_new_classifier(spec, file, text),
                                     rest, e);
    safetensors_close(file);
    return status;
}

void weights_check(const struct job_spec *spec, bool elsewhere, struct problems *problems)
{
    struct problems rest = {0};
    struct error e;
    int status = spec->model.init ? weights_check_file(spec, &rest, &e) : 0;

    if (status && !(elsewhere && status == -ERR_NOT_FOUND))
        problems_add(problems, "/model/init", NULL, "%s", e.text);
    for (size_t i = 0; i < rest.count; i++)
        problems_add(problems, rest.items[i].pointer, NULL, "%s", rest.items[i].message);
    problems_clear(&rest);
}
