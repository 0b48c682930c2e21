#include "worker/optim/sgd.h"

#include <stdlib.h>

#include "worker/kernels/memory.h"
#include "worker/kernels/parallel.h"

/* Neighbouring tensors that share their decay, padding included. */
struct range {
    size_t first, end;
    bool decays;
};

enum { PIECE_FLOATS = 64 * 1024 }; /* what threads share out */

struct sgd {
    struct model *model;
    struct sgd_config config;
    float *velocity;
    struct range *ranges;
    size_t range_count;
    double *piece_sums; /* of every piece, so that the total does not depend on the threads */
    double lr;          /* of the step going on */
};

static bool decays(const struct sgd_config *c, enum model_tensor_kind kind)
{
    return c->decay_bn || (kind != MODEL_BN_GAMMA && kind != MODEL_BN_BETA);
}

static bool is_trainable(enum model_tensor_kind kind)
{
    return kind != MODEL_BN_MEAN && kind != MODEL_BN_VAR;
}

/* Each range is at most a piece long. */
static void add_range(struct sgd *s, size_t first, size_t end, bool decay)
{
    for (; first < end; first += PIECE_FLOATS) {
        size_t to = end - first > PIECE_FLOATS ? first + PIECE_FLOATS : end;
        s->ranges[s->range_count++] = (struct range){first, to, decay};
    }
}

static int build_ranges(struct sgd *s, struct error *e)
{
    size_t tensors = model_tensor_count(s->model), floats = model_param_count(s->model);

    s->ranges = calloc(tensors + floats / PIECE_FLOATS + 1, sizeof *s->ranges);
    s->piece_sums = calloc(tensors + floats / PIECE_FLOATS + 1, sizeof *s->piece_sums);
    if (!s->ranges || !s->piece_sums)
        return error_set(e, ERR_NO_MEMORY, "no memory for the optimiser");
    for (size_t i = 0; i < tensors; i++) {
        const struct model_tensor *t = model_tensor(s->model, i);
        if (is_trainable(t->kind))
            add_range(s, t->offset, t->offset + t->count, decays(&s->config, t->kind));
    }
    return 0;
}

int sgd_create(struct model *m, const struct sgd_config *config, struct sgd **out, struct error *e)
{
    struct sgd *s = calloc(1, sizeof *s);
    size_t bytes = model_param_count(m) * sizeof(float);
    void *velocity = memory_allocate(bytes);

    if (!s || !velocity) {
        free(velocity);
        free(s);
        return error_set(e, ERR_NO_MEMORY, "no memory for the optimiser's velocities: %zu MiB",
                         bytes >> 20);
    }
    *s = (struct sgd){.model = m, .config = *config, .velocity = velocity};
    int status = build_ranges(s, e);
    if (status) {
        sgd_destroy(s);
        return status;
    }
    *out = s;
    return 0;
}

void sgd_destroy(struct sgd *s)
{
    if (!s)
        return;
    free(s->velocity);
    free(s->ranges);
    free(s->piece_sums);
    free(s);
}

static void update_pieces(int thread, int first, int end, void *context)
{
    struct sgd *s = context;
    float *w = model_params(s->model), *g = model_grads(s->model);

    (void)thread;
    for (int i = first; i < end; i++) {
        const struct range *r = &s->ranges[i];
        struct sgd_rule rule = {(float)s->lr, (float)s->config.momentum,
                                r->decays ? (float)s->config.weight_decay : 0, s->config.nesterov};
        s->piece_sums[i] = sgd_update(&rule, w + r->first, s->velocity + r->first, g + r->first,
                                      r->end - r->first);
    }
}

double sgd_step(struct sgd *s, double lr)
{
    double sum = 0;

    s->lr = lr;
    parallel_run(model_threads(s->model), (int)s->range_count, update_pieces, s);
    for (size_t i = 0; i < s->range_count; i++)
        sum += s->piece_sums[i];
    return sum;
}

float *sgd_velocity(struct sgd *s)
{
    return s->velocity;
}
