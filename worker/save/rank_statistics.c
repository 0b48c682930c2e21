#include "worker/save/rank_statistics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/digest.h"
#include "common/run/checkpoints.h"
#include "common/run/safetensors.h"
#include "common/system/file.h"
#include "common/xalloc.h"
#include "worker/ema.h"
#include "worker/model/weights.h"
#include "worker/run.h"
#include "worker/watch/stall.h"

enum { NAME_BYTES = 80 };

void rank_statistics_average(struct run *r, int64_t step)
{
    run_average(r, model_stats(r->model), model_stat_count(r->model));
    ema_gather(r);
    r->averaged_at = step;
}

/* Statistics of one layer, with one row per rank. The first tensor contains the rank numbers. */
struct rank_tensor {
    char name[NAME_BYTES];
    size_t offset, channels; /* channels: length of a row */
};

/* Shared memory of this machine with one row per rank: number, statistics, those of the EMA */
struct rank_rows {
    struct run *run;
    struct traincomm_shared *shared;
    int ranks;
    int found; /* number of rows read from files */
    struct rank_tensor *tensors;
    size_t count;
};

/* Collective; an error is the same on every rank. */
static int rank_statistics_open_rows(struct rank_rows *rows, struct run *r, struct error *e)
{
    size_t floats = 1 + model_stat_count(r->model) * (ema_has_begun(r->ema) ? 2 : 1);

    *rows = (struct rank_rows){.run = r, .ranks = traincomm_host_size(r->comm)};
    int status = traincomm_shared_create(r->comm, floats * sizeof(float), &rows->shared);
    if (status)
        return error_set(e, ERR_NO_MEMORY, "cannot share the running statistics of %d ranks: %s",
                         rows->ranks, traincomm_strerror(status));
    *(float *)traincomm_shared_part(rows->shared, traincomm_host_rank(r->comm)) = (float)r->rank;
    return 0;
}

static void rank_statistics_copy_row(const struct rank_rows *rows, bool into_row)
{
    const struct run *r = rows->run;
    size_t count = model_stat_count(r->model), bytes = count * sizeof(float);
    float *row = traincomm_shared_part(rows->shared, traincomm_host_rank(r->comm));
    float *own[] = {model_stats(r->model), ema_has_begun(r->ema) ? ema_stats(r->ema) : NULL};

    for (int i = 0; i < 2 && own[i]; i++) {
        float *part = row + 1 + (size_t)i * count;
        memcpy(into_row ? part : own[i], into_row ? own[i] : part, bytes);
    }
}

static void rank_statistics_close_rows(struct rank_rows *rows)
{
    traincomm_shared_destroy(rows->shared);
    free(rows->tensors);
}

static void rank_statistics_list_tensors(struct rank_rows *rows)
{
    const struct model *m = rows->run->model;
    size_t tensors = model_tensor_count(m), lists = ema_has_begun(rows->run->ema) ? 2 : 1;

    rows->tensors = xcalloc(1 + lists * tensors, sizeof *rows->tensors);
    rows->tensors[rows->count++] = (struct rank_tensor){.name = "ranks", .channels = 1};
    for (size_t i = 0; i < lists * tensors; i++) {
        const struct model_tensor *t = model_tensor(m, i % tensors);
        struct rank_tensor *to = &rows->tensors[rows->count];
        if (t->kind != MODEL_BN_MEAN && t->kind != MODEL_BN_VAR)
            continue;
        to->offset = 1 + i / tensors * model_stat_count(m) + t->offset;
        to->channels = t->count;
        snprintf(to->name, sizeof to->name, "%s%s", i < tensors ? "" : "ema.", t->name);
        rows->count++;
    }
}

static void rank_statistics_fill_of_ranks(size_t i, void *data, void *context)
{
    const struct rank_rows *rows = context;
    const struct rank_tensor *t = &rows->tensors[i];

    for (int rank = 0; rank < rows->ranks; rank++)
        memcpy((float *)data + (size_t)rank * t->channels,
               (float *)traincomm_shared_part(rows->shared, rank) + t->offset,
               t->channels * sizeof(float));
}

static struct safetensors_tensor rank_statistics_entry_of(const struct rank_tensor *t,
                                                          int64_t ranks)
{
    return (struct safetensors_tensor){
        .name = t->name,
        .dtype = SAFETENSORS_F32,
        .dims = 2,
        .shape = {ranks, (int64_t)t->channels},
    };
}

/* Call on the machine's first rank only. */
static int rank_statistics_write_file(struct rank_rows *rows, const char *folder,
                                      char hex[DIGEST_BYTES], struct error *e)
{
    char path[PATH_MAX];

    rank_statistics_list_tensors(rows);
    struct safetensors_tensor *entries = xcalloc(rows->count, sizeof *entries);
    for (size_t i = 0; i < rows->count; i++)
        entries[i] = rank_statistics_entry_of(&rows->tensors[i], rows->ranks);
    file_path(path, NULL, "%s/" CHECKPOINT_STATISTICS_OF, folder, rows->run->rank);
    int status = safetensors_write(path, entries, rows->count, NULL, 0,
                                   rank_statistics_fill_of_ranks, rows, e);
    free(entries);
    return status ? status : digest_file(path, hex, e);
}

/* hex: the digest of this machine's file, or "" on all but its first rank. */
static int rank_statistics_gather_digests(struct run *r, const char hex[DIGEST_BYTES],
                                          json_t *digests, struct error *e)
{
    void *all;
    size_t bytes;
    char name[64];
    int bad = traincomm_gather(r->comm, hex, DIGEST_BYTES, &all, &bytes);

    for (int i = 0; !bad && r->rank == 0 && i < r->world; i++) {
        const char *of = (const char *)all + (size_t)i * DIGEST_BYTES;
        snprintf(name, sizeof name, CHECKPOINT_STATISTICS_OF, i);
        if (*of)
            json_object_set_new(digests, name, json_string(of));
    }
    free(all);
    return bad ? error_set(e, ERR_NO_MEMORY, "no memory for digests of %d ranks", r->world) : 0;
}

int rank_statistics_save(struct run *r, const char *folder, json_t *digests, struct error *e)
{
    char hex[DIGEST_BYTES] = "";
    struct rank_rows rows;

    if (r->world == 1 || model_stat_count(r->model) == 0)
        return 0;
    int status = rank_statistics_open_rows(&rows, r, e);
    if (status)
        return status;
    rank_statistics_copy_row(&rows, true);
    traincomm_barrier(r->comm);
    if (traincomm_host_rank(r->comm) == 0)
        status = rank_statistics_write_file(&rows, folder, hex, e);
    status = run_agree(r, status, e);
    rank_statistics_close_rows(&rows);
    return status ? status : run_agree(r, rank_statistics_gather_digests(r, hex, digests, e), e);
}

static float *rank_statistics_read_tensor(struct safetensors *file, const struct rank_tensor *t,
                                          int64_t ranks, const char *path, struct error *e)
{
    const struct safetensors_tensor *found = safetensors_find(file, t->name);
    struct safetensors_tensor wanted = rank_statistics_entry_of(t, ranks);

    if (!found || found->dtype != wanted.dtype || found->dims != wanted.dims ||
        memcmp(found->shape, wanted.shape, 2 * sizeof wanted.shape[0]) != 0) {
        error_set(e, ERR_CORRUPT, "%s has no %s of %lld ranks and %lld channels", path, t->name,
                  (long long)wanted.shape[0], (long long)wanted.shape[1]);
        return NULL;
    }
    float *data = malloc(safetensors_bytes(found));
    if (!data)
        error_set(e, ERR_NO_MEMORY, "no memory to read %s", path);
    if (!data || !safetensors_read(file, found, data, e))
        return data;
    free(data);
    return NULL;
}

/* Copies the rows of this machine's ranks and returns their number. ranks: the rank of each row in
 * data; NULL: row i belongs to rank i. */
static int rank_statistics_take_tensor(const struct rank_rows *rows, const struct rank_tensor *t,
                                       const float *data, const float *ranks, int64_t count)
{
    int taken = 0;

    for (int64_t i = 0; i < count; i++)
        for (int rank = 0; rank < rows->ranks; rank++) {
            float *row = traincomm_shared_part(rows->shared, rank);
            if (row[0] != (ranks ? ranks[i] : (float)i))
                continue;
            memcpy(row + t->offset, data + (size_t)i * t->channels, t->channels * sizeof *row);
            taken++;
        }
    return taken;
}

static int rank_statistics_read_file(struct rank_rows *rows, const char *path, struct error *e)
{
    struct safetensors *file;
    float *ranks = NULL, *data;
    int taken = 0, status = safetensors_open(path, &file, e);

    if (status)
        return status;
    const struct safetensors_tensor *list = safetensors_find(file, rows->tensors[0].name);
    int64_t count = list ? list->shape[0] : rows->run->world;
    if (list && !(ranks = rank_statistics_read_tensor(file, &rows->tensors[0], count, path, e)))
        status = -(int)e->code;
    for (size_t i = 1; !status && i < rows->count; i++) {
        if (!(data = rank_statistics_read_tensor(file, &rows->tensors[i], count, path, e)))
            status = -(int)e->code;
        else
            taken = rank_statistics_take_tensor(rows, &rows->tensors[i], data, ranks, count);
        free(data);
    }
    rows->found += taken;
    free(ranks);
    safetensors_close(file);
    return status;
}

/* Call on the machine's first rank only. Its own file suffices if the machine has the same ranks as
 * when the checkpoint was written; otherwise reads the files of the other machines, or that of
 * older versions. */
static int rank_statistics_read_rows(struct rank_rows *rows, struct error *e)
{
    const struct run *r = rows->run;
    char path[PATH_MAX];
    int status = 0;

    rank_statistics_list_tensors(rows);
    for (int i = -2; !status && rows->found < rows->ranks && i < r->world; i++) {
        file_path(path, NULL, "%s/" CHECKPOINT_STATISTICS_OF, r->resumed_from, i < 0 ? r->rank : i);
        if (i == -1)
            file_path(path, NULL, "%s/statistics.safetensors", r->resumed_from);
        if (i != r->rank && access(path, F_OK) == 0)
            status = rank_statistics_read_file(rows, path, e);
    }
    if (status || rows->found == rows->ranks)
        return status;
    return error_set(e, ERR_NOT_FOUND,
                     "%s has running statistics of only %d of the %d ranks of this machine: make "
                     "all files of the checkpoint readable on each machine",
                     r->resumed_from, rows->found, rows->ranks);
}

int rank_statistics_resume(struct run *r, struct error *e)
{
    struct rank_rows rows;
    char message[256];

    if (model_stat_count(r->model) == 0 || !r->from.has_statistics)
        return 0;
    snprintf(message, sizeof message,
             "the checkpoint has the batch norm statistics of each of %lld ranks; this run "
             "continues with their average",
             (long long)r->from.world_size);
    if (r->world != r->from.world_size)
        return run_agree(r, run_warn(r, r->from.step, message, e), e);
    int status = rank_statistics_open_rows(&rows, r, e);
    if (status)
        return status;
    stall_doing(r->stall, STALL_FILES);
    traincomm_barrier(r->comm);
    if (traincomm_host_rank(r->comm) == 0)
        status = rank_statistics_read_rows(&rows, e);
    status = run_agree(r, status, e);
    stall_doing(r->stall, STALL_COMPUTE);
    if (!status)
        rank_statistics_copy_row(&rows, false);
    rank_statistics_close_rows(&rows);
    return status;
}
