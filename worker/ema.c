#include "worker/ema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/run/checkpoints.h"
#include "common/system/file.h"
#include "common/xalloc.h"
#include "worker/model/weights.h"
#include "worker/run.h"
#include "worker/team/memory.h"
#include "worker/team/parallel.h"
#include "worker/watch/stall.h"

enum { EMA_BLOCK = 4096 }; /* floats per block, the unit of work of a thread */

struct ema {
    float *params, *stats;
    bool begun;
    int64_t first_step; /* of the schedule */
};

/* Range of weights of a rank; the same blocks for any number of ranks. */
static struct parallel_range ema_share(const struct run *r, int rank)
{
    size_t count = model_param_count(r->model), blocks = (count + EMA_BLOCK - 1) / EMA_BLOCK;
    struct parallel_range range = parallel_range(blocks, (struct parallel_share){rank, r->world});

    range.first *= EMA_BLOCK;
    range.end = range.end == blocks ? count : range.end * EMA_BLOCK;
    return range;
}

/* Called by rank 0. A checkpoint from before the average began has none. */
static int ema_load(struct run *r, struct error *e)
{
    char path[PATH_MAX];

    file_path(path, NULL, "%s/%s", r->resumed_from, CHECKPOINT_EMA);
    if (access(path, F_OK) != 0)
        return 0;
    ema_swap(r);
    int status = model_load(r->model, path, e);
    ema_swap(r);
    r->ema->begun = !status;
    return status;
}

int ema_resume(struct run *r, struct error *e)
{
    struct ema *m = r->ema;
    int status = 0;

    if (!m)
        return 0;
    stall_doing(r->stall, STALL_FILES);
    if (r->rank == 0)
        status = ema_load(r, e);
    status = run_agree(r, status, e);
    stall_doing(r->stall, STALL_COMPUTE);
    if (status)
        return status;
    traincomm_broadcast(r->comm, &m->begun, sizeof m->begun, 0);
    traincomm_broadcast(r->comm, m->params, model_param_count(r->model) * sizeof(float), 0);
    traincomm_broadcast(r->comm, m->stats, model_stat_count(r->model) * sizeof(float), 0);
    return 0;
}

int ema_create(struct run *r, struct error *e)
{
    if (r->spec->mode != JOB_MODE_TRAIN || !job_spec_averages(r->spec))
        return 0;
    struct ema *m = r->ema = xcalloc(1, sizeof *m);
    m->params = memory_allocate(model_param_count(r->model) * sizeof(float));
    m->stats = memory_allocate(model_stat_count(r->model) * sizeof(float));
    m->first_step = llround(plan_steps_until(r->plan, r->spec->ema.from_epoch));
    if (m->params && m->stats)
        return 0;
    return error_set(e, ERR_NO_MEMORY, "no memory for the averaged weights: %zu MiB",
                     model_param_count(r->model) * sizeof(float) >> 20);
}

void ema_destroy(struct ema *m)
{
    if (!m)
        return;
    free(m->params);
    free(m->stats);
    free(m);
}

bool ema_has_begun(const struct ema *m)
{
    return m && m->begun;
}

struct ema_pass {
    float *average;
    const float *weights;
    size_t first, end;
    float part; /* 1 - d */
};

static void ema_run_blocks(int thread, int first, int end, void *context)
{
    const struct ema_pass *p = context;
    size_t from = p->first + (size_t)first * EMA_BLOCK, to = p->first + (size_t)end * EMA_BLOCK;

    (void)thread;
    to = to < p->end ? to : p->end;
    for (size_t i = from; i < to; i++)
        p->average[i] += p->part * (p->weights[i] - p->average[i]);
}

static void ema_add(const struct run *r, struct ema_pass p)
{
    size_t blocks = (p.end - p.first + EMA_BLOCK - 1) / EMA_BLOCK;

    if (blocks)
        parallel_run(r->threads, (int)blocks, ema_run_blocks, &p);
}

static double ema_decay(const struct job_spec *spec, int64_t n)
{
    double decay = job_spec_average_decay(spec);

    if (n < 1)
        return 0;
    return spec->ema.warmup ? fmin(decay, (1.0 + (double)n) / (10.0 + (double)n)) : decay;
}

void ema_update(struct run *r, int64_t step)
{
    struct ema *m = r->ema;
    int64_t every = r->spec->ema.every;

    if (!m || step < m->first_step || (m->begun && (step + 1) % every))
        return;
    struct parallel_range mine = ema_share(r, r->rank);
    double decay =
        m->begun ? ema_decay(r->spec, (step + 1) / every - (m->first_step + 1) / every) : 0;
    float part = (float)(1 - decay);

    m->begun = true;
    ema_add(r, (struct ema_pass){m->params, model_params(r->model), mine.first, mine.end, part});
    ema_add(
        r, (struct ema_pass){m->stats, model_stats(r->model), 0, model_stat_count(r->model), part});
}

void ema_gather(struct run *r)
{
    if (!ema_has_begun(r->ema))
        return;
    for (int rank = 0; rank < r->world && r->world > 1; rank++) {
        struct parallel_range share = ema_share(r, rank);
        traincomm_broadcast(r->comm, r->ema->params + share.first,
                            (share.end - share.first) * sizeof(float), rank);
    }
    run_average(r, r->ema->stats, model_stat_count(r->model));
}

float *ema_stats(struct ema *m)
{
    return m->stats;
}

static void ema_exchange(float *a, float *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float x = a[i];
        a[i] = b[i];
        b[i] = x;
    }
}

void ema_swap(struct run *r)
{
    ema_exchange(model_params(r->model), r->ema->params, model_param_count(r->model));
    ema_exchange(model_stats(r->model), r->ema->stats, model_stat_count(r->model));
}
