/*
 * A step of a network counted: what each of so many threads would do in every team, by the code
 * that shares (worker/team/dry_run.h), and what that makes of their speed.
 *
 * A phase, from one barrier to the next, takes as long as its largest share: its products at
 * shares_flops a second, what it moves at SHARES_BYTES. So a team's `even` is its work by one
 * thread over what its phases take T threads, T times: 1 where nothing is lost to uneven shares or
 * to work that is done twice.
 */
#pragma once

#include <stdlib.h>

#include "tests/tune_all.h"
#include "worker/team/dry_run.h"
#include "worker/model/model.h"
#include "worker/model/tuning.h"
#include "worker/model/forward_backward.h"
#include "worker/model/init.h"

#define SHARES_BYTES 10e9
/* bf16: with AMX, as tests/bench/conv_shapes measured it. */
static const double shares_flops[] = {[JOB_PRECISION_FP32] = 100e9, [JOB_PRECISION_BF16] = 800e9};

enum { SHARES_TEAMS = 1024 };

struct shares_team {
    double work;    /* seconds of all threads */
    double longest; /* seconds of the phases, each by its largest share */
    double most_flops, flops, most_bytes,
        bytes; /* sums of the phases' largest shares, and of all */
    int barriers;
};

struct shares_step {
    double flops; /* a second */
    int count;
    struct shares_team team[SHARES_TEAMS];
    double seconds[SHARES_TEAMS]; /* where the work was done */
};

static inline void shares_add(int parts, const struct dry_run *shares, double seconds,
                              void *context)
{
    struct shares_step *s = context;

    if (s->count == SHARES_TEAMS)
        abort();
    s->seconds[s->count] = seconds;
    struct shares_team *t = &s->team[s->count++];
    *t = (struct shares_team){0};
    for (int k = 0; shares && k <= shares[0].phases; k++) {
        double longest = 0, flops = 0, bytes = 0;
        for (int i = 0; i < parts; i++) {
            const struct dry_phase *p = &shares[i].phase[k];
            double work = p->flops / s->flops + p->bytes / SHARES_BYTES;
            longest = work > longest ? work : longest;
            flops = p->flops > flops ? p->flops : flops;
            bytes = p->bytes > bytes ? p->bytes : bytes;
            t->work += work;
            t->flops += p->flops;
            t->bytes += p->bytes;
        }
        t->longest += longest;
        t->most_flops += flops;
        t->most_bytes += bytes;
    }
    t->barriers = shares ? shares[0].phases : 0;
}

struct shares_case {
    const char *arch;
    int image_size;
    enum job_stem stem;
    enum conv_winograd winograd; /* of all layers that take it */
    enum job_precision precision;
    size_t vec; /* of the engine, as dry_run_vec has it */
};

/* As the planner knows it. */
static inline struct job_spec shares_spec(const struct shares_case *c)
{
    return (struct job_spec){
        .model = {.arch = (char *)c->arch,
                  .stem = c->stem,
                  .image_size = c->image_size,
                  .classes = c->arch[0] == 'c' ? 10 : 1000},
        .precision = c->precision
    };
}

/* Forward and backward of n images. dry: the model has memory for one image only, and may be of
 * another engine (vec), which multiplies by its own tile. */
static inline void shares_run(const struct shares_case *c, int n, int threads, bool dry, int rounds,
                              struct shares_step *out)
{
    struct model_tuning tuning = {0};
    struct model_config config = {.arch = arch_find(c->arch),
                                  .stem = c->stem,
                                  .classes = c->arch[0] == 'c' ? 10 : 1000,
                                  .image_size = c->image_size,
                                  .batch = dry ? 1 : n,
                                  .threads = threads,
                                  .precision = c->precision,
                                  .gemm = c->vec ? JOB_GEMM_OWN : JOB_GEMM_AUTO,
                                  .bn_momentum = 0.1};
    struct team_watch watch = {dry, shares_add, out};
    struct model *m;
    struct error e;
    size_t floats = (size_t)n * (size_t)(c->image_size * c->image_size * 3);
    float *images = calloc(dry ? 1 : floats, sizeof *images);
    int32_t *labels = calloc((size_t)n, sizeof *labels);

    out->flops = shares_flops[c->precision];
    dry_run_vec = c->vec;
    if (c->winograd)
        tune_all(&config, c->winograd, &tuning);
    config.tuning = &tuning;
    team_watch = dry ? &watch : NULL;
    if (!images || !labels || model_create(&config, &m, &e))
        abort();
    team_watch = NULL;
    if (!dry)
        model_init(m, 1);
    for (size_t i = 0; !dry && i < floats; i++)
        images[i] = (float)(i * 7919 % 1009) / 504.5f - 1;
    for (int i = 0; i < rounds; i++) { /* the last one counts */
        out->count = 0;
        team_watch = &watch;
        model_forward(m, images, labels, n, NULL);
        model_backward(m, 1, false, NULL, NULL);
        team_watch = NULL;
    }
    dry_run_vec = 0;
    model_destroy(m);
    free(images);
    free(labels);
}

/* The share of its speed that a step keeps by so many threads. seconds: of the teams by one thread,
 * or NULL: as counted. */
static inline double shares_efficiency(const struct shares_step *one, const struct shares_step *all,
                                       int threads, const double *seconds)
{
    double wanted = 0, taken = 0;

    if (one->count != all->count)
        abort();
    for (int i = 0; i < one->count; i++) {
        double weight = seconds ? seconds[i] : one->team[i].work;
        wanted += weight;
        taken += weight * all->team[i].longest * threads / one->team[i].work;
    }
    return wanted / taken;
}
