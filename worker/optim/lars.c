#include "worker/optim/lars.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker/kernels/memory.h"
#include "worker/kernels/parallel.h"
#include "worker/kernels/vec.h"

enum { PIECE_FLOATS = 64 * 1024, LANES = 8 };

/* A part of one tensor: what threads share out. */
struct piece {
    size_t first, end, tensor;
};

struct lars {
    struct model *model;
    struct lars_config config;
    float *momentum;
    struct piece *pieces;
    size_t piece_count;
    struct lars_norms *sums; /* of every piece, so that a norm does not depend on the threads */
    double last_lr;          /* of the step before; 0: none */
    struct lars_rule *rules; /* of every tensor, for the step going on */
};

static bool is_trainable(enum model_tensor_kind kind)
{
    return kind != MODEL_BN_MEAN && kind != MODEL_BN_VAR;
}

static bool is_excluded(enum model_tensor_kind kind)
{
    return kind == MODEL_BN_GAMMA || kind == MODEL_BN_BETA || kind == MODEL_FC_BIAS;
}

static void cut_tensors(struct lars *l)
{
    for (size_t i = 0; i < model_tensor_count(l->model); i++) {
        const struct model_tensor *t = model_tensor(l->model, i);
        size_t end = t->offset + t->count;
        if (!is_trainable(t->kind))
            continue;
        for (size_t from = t->offset; from < end; from += PIECE_FLOATS)
            l->pieces[l->piece_count++] =
                (struct piece){from, end - from > PIECE_FLOATS ? from + PIECE_FLOATS : end, i};
    }
}

int lars_create(struct model *m, const struct lars_config *config, struct lars **out,
                struct error *e)
{
    struct lars *l = calloc(1, sizeof *l);
    size_t floats = model_param_count(m), tensors = model_tensor_count(m);
    void *momentum = memory_allocate(floats * sizeof(float));
    size_t most = tensors + floats / PIECE_FLOATS + 1;

    if (!l || !momentum) {
        free(momentum);
        free(l);
        return error_set(e, ERR_NO_MEMORY, "no memory for the optimiser's momentum: %zu MiB",
                         floats * sizeof(float) >> 20);
    }
    *l = (struct lars){.model = m, .config = *config, .momentum = momentum};
    l->pieces = calloc(most, sizeof *l->pieces);
    l->sums = calloc(most, sizeof *l->sums);
    l->rules = calloc(tensors, sizeof *l->rules);
    if (!l->pieces || !l->sums || !l->rules) {
        lars_destroy(l);
        return error_set(e, ERR_NO_MEMORY, "no memory for the optimiser");
    }
    cut_tensors(l);
    *out = l;
    return 0;
}

void lars_destroy(struct lars *l)
{
    if (!l)
        return;
    free(l->momentum);
    free(l->pieces);
    free(l->sums);
    free(l->rules);
    free(l);
}

void lars_set_last_rate(struct lars *l, double lr)
{
    l->last_lr = lr;
}

float *lars_momentum(struct lars *l)
{
    return l->momentum;
}

struct lars_norms lars_norms_of(const float *w, const float *g, size_t n)
{
    double ww[LANES] = {0}, gg[LANES] = {0};
    struct lars_norms sum = {0, 0};
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (size_t k = 0; k < LANES; k++) {
            ww[k] += (double)w[i + k] * w[i + k];
            gg[k] += (double)g[i + k] * g[i + k];
        }
    for (; i < n; i++) {
        sum.w += (double)w[i] * w[i];
        sum.g += (double)g[i] * g[i];
    }
    for (int k = 0; k < LANES; k++) {
        sum.w += ww[k];
        sum.g += gg[k];
    }
    return sum;
}

double lars_trust(const struct lars_norms *norms, double eta, double decay)
{
    double w = sqrt(norms->w), g = sqrt(norms->g);
    return w > 0 && g > 0 ? eta * w / (g + decay * w) : 1;
}

static void update_one(const struct lars_rule *r, float *w, float *m, float g)
{
    float step = r->rate * (g + r->decay * *w);
    *m = r->momentum * *m + step;
    *w -= r->nesterov ? r->ahead * *m + step : *m;
}

void lars_update(const struct lars_rule *r, float *w, float *m, const float *g, size_t n)
{
    vec rate = vec_all(r->rate), momentum = vec_all(r->momentum), decay = vec_all(r->decay);
    vec ahead = vec_all(r->ahead);
    size_t i = 0;

    for (; i + VEC <= n; i += VEC) {
        vec wi = vec_load(w + i), step = rate * (vec_load(g + i) + decay * wi);
        vec mi = momentum * vec_load(m + i) + step;
        vec_store(m + i, mi);
        vec down = mi;
        if (r->nesterov)
            down = ahead * mi + step;
        vec_store(w + i, wi - down);
    }
    for (; i < n; i++)
        update_one(r, w + i, m + i, g[i]);
}

static void sum_pieces(int thread, int first, int end, void *context)
{
    struct lars *l = context;
    const float *w = model_params(l->model), *g = model_grads(l->model);

    (void)thread;
    for (int i = first; i < end; i++) {
        const struct piece *p = &l->pieces[i];
        l->sums[i] = lars_norms_of(w + p->first, g + p->first, p->end - p->first);
    }
}

static void update_pieces(int thread, int first, int end, void *context)
{
    struct lars *l = context;
    float *w = model_params(l->model), *g = model_grads(l->model);

    (void)thread;
    for (int i = first; i < end; i++) {
        const struct piece *p = &l->pieces[i];
        lars_update(&l->rules[p->tensor], w + p->first, l->momentum + p->first, g + p->first,
                    p->end - p->first);
    }
}

static struct lars_rule rule_of(const struct lars *l, size_t tensor, const struct lars_norms *norms,
                                double lr)
{
    const struct lars_config *c = &l->config;
    bool excluded = is_excluded(model_tensor(l->model, tensor)->kind);
    double decay = !excluded || c->decay_bn ? c->weight_decay : 0;
    double trust = excluded ? 1 : lars_trust(norms, c->eta, decay);

    double correction = c->momentum_correction && l->last_lr > 0 ? lr / l->last_lr : 1;

    return (struct lars_rule){(float)(lr * trust), (float)(c->momentum * correction), (float)decay,
                              c->nesterov, (float)c->momentum};
}

double lars_step(struct lars *l, double lr)
{
    int threads = model_threads(l->model);
    double all = 0;

    parallel_run(threads, (int)l->piece_count, sum_pieces, l);
    for (size_t i = 0; i < l->piece_count;) {
        size_t tensor = l->pieces[i].tensor;
        struct lars_norms norms = {0, 0};
        for (; i < l->piece_count && l->pieces[i].tensor == tensor; i++) {
            norms.w += l->sums[i].w;
            norms.g += l->sums[i].g;
        }
        all += norms.g;
        l->rules[tensor] = rule_of(l, tensor, &norms, lr);
    }
    parallel_run(threads, (int)l->piece_count, update_pieces, l);
    l->last_lr = lr;
    return all;
}
