#include "worker/save/rank_statistics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/run/checkpoints.h"
#include "common/run/safetensors.h"
#include "worker/average.h"
#include "worker/ema.h"
#include "worker/watch/stall.h"

enum { NAME_BYTES = 80 };

void rank_statistics_free(struct rank_statistics *s)
{
    free(s->of_model);
    free(s->of_average);
    *s = (struct rank_statistics){0};
}

static int gather_one(struct run *r, const float *mine, float **all, struct error *e)
{
    size_t bytes = model_stat_count(r->model) * sizeof(float), all_bytes;
    void *rows = NULL;
    int status = traincomm_gather(r->comm, mine, bytes, &rows, &all_bytes);

    *all = rows;
    if (!status)
        return 0;
    return error_set(e, ERR_NO_MEMORY, "the running statistics of %d ranks: %s", r->world,
                     traincomm_strerror(status));
}

int rank_statistics_gather(struct run *r, struct rank_statistics *out, struct error *e)
{
    *out = (struct rank_statistics){0};
    if (r->world == 1 || model_stat_count(r->model) == 0)
        return 0;
    int status = gather_one(r, model_stats(r->model), &out->of_model, e);
    if (!status && ema_has_begun(r->ema))
        status = gather_one(r, ema_stats(r->ema), &out->of_average, e);
    if (status)
        rank_statistics_free(out);
    return status;
}

void rank_statistics_average(struct run *r, int64_t step)
{
    average_over_ranks(r, model_stats(r->model), model_stat_count(r->model));
    ema_gather(r);
    r->averaged_at = step;
}

/* ---- the file */

/* A tensor of the file: one of the model's statistics, of all ranks. */
struct rank_tensor {
    char name[NAME_BYTES];
    float *rows; /* (ranks, model_stat_count) that it is a part of */
    const struct model_tensor *of;
};

struct rank_file {
    const struct run *run;
    struct rank_tensor *tensors;
    size_t count;
};

static bool is_statistic(const struct model_tensor *t)
{
    return t->kind == MODEL_BN_MEAN || t->kind == MODEL_BN_VAR;
}

static void list_tensors(struct rank_file *f, const char *prefix, float *rows)
{
    const struct model *m = f->run->model;

    for (size_t i = 0; rows && i < model_tensor_count(m); i++) {
        const struct model_tensor *t = model_tensor(m, i);
        struct rank_tensor *to = &f->tensors[f->count];
        if (!is_statistic(t))
            continue;
        *to = (struct rank_tensor){.rows = rows, .of = t};
        snprintf(to->name, sizeof to->name, "%s%s", prefix, t->name);
        f->count++;
    }
}

static int list_ranks_file(struct rank_file *f, const struct run *r,
                           const struct rank_statistics *s, struct error *e)
{
    *f = (struct rank_file){.run = r};
    f->tensors = calloc(2 * model_tensor_count(r->model), sizeof *f->tensors);
    if (!f->tensors)
        return error_set(e, ERR_NO_MEMORY, "no memory to list the statistics of %d ranks",
                         r->world);
    list_tensors(f, "", s->of_model);
    list_tensors(f, "ema.", s->of_average);
    return 0;
}

/* Between (ranks, model_stat_count) and (ranks, channels). */
static void copy_tensor(const struct rank_file *f, const struct rank_tensor *t, float *data,
                        bool into_file)
{
    size_t row = model_stat_count(f->run->model), channels = t->of->count;

    for (size_t rank = 0; rank < (size_t)f->run->world; rank++) {
        float *of_rank = t->rows + rank * row + t->of->offset, *of_file = data + rank * channels;
        memcpy(into_file ? of_file : of_rank, into_file ? of_rank : of_file,
               channels * sizeof *data);
    }
}

static void fill_of_ranks(size_t i, void *data, void *context)
{
    const struct rank_file *f = context;
    copy_tensor(f, &f->tensors[i], data, true);
}

static struct safetensors_tensor entry_of(const struct rank_file *f, const struct rank_tensor *t)
{
    return (struct safetensors_tensor){
        .name = t->name,
        .dtype = SAFETENSORS_F32,
        .dims = 2,
        .shape = {f->run->world, (int64_t)t->of->count},
    };
}

int rank_statistics_save(const struct run *r, const struct rank_statistics *s, const char *folder,
                         struct error *e)
{
    char path[PATH_MAX + 128];
    struct rank_file f;

    if (!s->of_model)
        return 0;
    int status = list_ranks_file(&f, r, s, e);
    if (status)
        return status;
    struct safetensors_tensor *entries = calloc(f.count, sizeof *entries);
    for (size_t i = 0; entries && i < f.count; i++)
        entries[i] = entry_of(&f, &f.tensors[i]);
    snprintf(path, sizeof path, "%s/" CHECKPOINT_STATISTICS, folder);
    status = entries ? safetensors_write(path, entries, f.count, NULL, 0, fill_of_ranks, &f, e)
                     : error_set(e, ERR_NO_MEMORY, "no memory to write %s", path);
    free(entries);
    free(f.tensors);
    return status;
}

/* ---- going on */

static int read_tensor(const struct rank_file *f, const struct rank_tensor *t,
                       struct safetensors *file, const char *path, struct error *e)
{
    const struct safetensors_tensor *found = safetensors_find(file, t->name);
    struct safetensors_tensor wanted = entry_of(f, t);

    if (!found || found->dtype != wanted.dtype || found->dims != wanted.dims ||
        memcmp(found->shape, wanted.shape, 2 * sizeof wanted.shape[0]) != 0)
        return error_set(e, ERR_CORRUPT, "%s has no %s of %lld ranks and %lld channels", path,
                         t->name, (long long)wanted.shape[0], (long long)wanted.shape[1]);
    float *data = malloc(safetensors_bytes(found));
    int status = data ? safetensors_read(file, found, data, e)
                      : error_set(e, ERR_NO_MEMORY, "no memory to read %s", path);
    if (!status)
        copy_tensor(f, t, data, false);
    free(data);
    return status;
}

static int read_file(const struct run *r, struct safetensors *file, const char *path,
                     struct rank_statistics *s, struct error *e)
{
    size_t floats = (size_t)r->world * model_stat_count(r->model);
    struct rank_file f;
    int status = 0;

    s->of_model = calloc(floats, sizeof(float));
    s->of_average = ema_has_begun(r->ema) ? calloc(floats, sizeof(float)) : NULL;
    if (!s->of_model || (ema_has_begun(r->ema) && !s->of_average))
        return error_set(e, ERR_NO_MEMORY, "no memory to read %s", path);
    status = list_ranks_file(&f, r, s, e);
    for (size_t i = 0; !status && i < f.count; i++)
        status = read_tensor(&f, &f.tensors[i], file, path, e);
    free(f.tensors);
    return status;
}

static int say_average(struct run *r, struct error *e)
{
    char message[256];

    snprintf(message, sizeof message,
             "the checkpoint has the running statistics of batch norm of each of %lld ranks; the "
             "run goes on with their average",
             (long long)r->from.world_size);
    return run_warn(r, r->from.step, message, e);
}

/* Rank 0. Without the file, which most checkpoints do not have, s stays empty. */
static int load(struct run *r, struct rank_statistics *s, struct error *e)
{
    char path[PATH_MAX + 128];
    struct safetensors *file;

    snprintf(path, sizeof path, "%s/" CHECKPOINT_STATISTICS, r->resumed_from);
    if (access(path, F_OK))
        return 0;
    if (r->world != r->from.world_size)
        return say_average(r, e);
    int status = safetensors_open(path, &file, e);
    if (status)
        return status;
    status = read_file(r, file, path, s, e);
    safetensors_close(file);
    if (status)
        rank_statistics_free(s);
    return status;
}

/* all: rank 0's; mine: this rank's row of it. */
static int distribute(struct run *r, float *all, float *mine, struct error *e)
{
    size_t count = model_stat_count(r->model);
    float *row = malloc(count * sizeof *row);
    int status =
        row ? 0 : error_set(e, ERR_NO_MEMORY, "no memory for the running statistics of a rank");

    status = run_agree(r, status, e);
    for (int rank = 0; !status && rank < r->world; rank++) {
        if (r->rank == 0)
            memcpy(row, all + (size_t)rank * count, count * sizeof *row);
        traincomm_broadcast(r->comm, row, count * sizeof *row, 0);
        if (r->rank == rank)
            memcpy(mine, row, count * sizeof *row);
    }
    free(row);
    return status;
}

int rank_statistics_resume(struct run *r, struct error *e)
{
    struct rank_statistics all = {0};
    int status = 0;

    if (model_stat_count(r->model) == 0)
        return 0;
    stall_doing(r->stall, STALL_FILES);
    if (r->rank == 0)
        status = load(r, &all, e);
    status = run_agree(r, status, e);
    stall_doing(r->stall, STALL_COMPUTE);
    bool there = all.of_model != NULL;
    traincomm_broadcast(r->comm, &there, sizeof there, 0);
    if (!status && there)
        status = distribute(r, all.of_model, model_stats(r->model), e);
    if (!status && there && ema_has_begun(r->ema))
        status = distribute(r, all.of_average, ema_stats(r->ema), e);
    rank_statistics_free(&all);
    return status;
}
