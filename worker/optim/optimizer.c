#include "worker/optim/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert_always.h"
#include "common/job/recipe/optimizers.h"
#include "common/xalloc.h"
#include "worker/model/weights.h"
#include "worker/optim/update.h"
#include "worker/team/dry_run.h"
#include "worker/team/memory.h"
#include "worker/team/parallel.h"

/* Sums are taken per chunk and added per piece, independently of the threads. Threads share chunks:
 * at most 1.02 of the mean for 48 threads. */
enum { CHUNKS_IN_PIECE = 16, PIECE_FLOATS = CHUNKS_IN_PIECE * OPTIM_FLOATS_IN_SUM };

struct piece {
    size_t first, end, tensor;
};

#define OPTIMIZER_MAGIC 0x4f707431

struct optimizer {
    unsigned magic;
    struct model *model;
    const struct optimizer_kind *kind;
    const struct optim_kernel *kernel;
    struct job_optimizer_keys keys;
    double peak_lr;
    double head_factor; /* of the classifier's rate */
    float loss_scale;   /* divisor of the gradients */
    const char *state_names[OPTIMIZER_STATES_MAX];
    float *states[OPTIMIZER_STATES_MAX];
    size_t state_count;
    struct piece *pieces, *chunks;
    size_t piece_count, chunk_count;
    struct optim_norms
        *norms;      /* of each piece, if norms are known first (job_optimizer_norms_first) */
    double *squares; /* otherwise of each chunk's gradients, from the update */
    float clip;      /* factor of the gradients in the current step */
    struct optim_rule *rules;    /* of each tensor, for the current step */
    struct parallel_range range; /* to update now */
    float *gradients;            /* of the range */
    int64_t steps;               /* done */
    double last_lr;              /* of the last one; 0: none */
};

/* Gamma and beta, and for some optimisers the biases. */
static bool optimizer_is_spared(const struct optimizer *o, enum model_tensor_kind kind)
{
    return kind == MODEL_BN_GAMMA || kind == MODEL_BN_BETA ||
           ((kind == MODEL_FC_BIAS || kind == MODEL_CONV_BIAS) && o->kind->spares_biases);
}

static size_t optimizer_cut_tensors(const struct optimizer *o, size_t floats, struct piece *pieces)
{
    size_t count = 0;

    for (size_t i = 0; i < model_tensor_count(o->model); i++) {
        const struct model_tensor *t = model_tensor(o->model, i);
        size_t end = t->offset + t->count;
        if (t->kind == MODEL_BN_MEAN || t->kind == MODEL_BN_VAR ||
            t->offset < model_first_trained(o->model))
            continue;
        for (size_t from = t->offset; from < end; from += floats)
            pieces[count++] = (struct piece){from, end - from > floats ? from + floats : end, i};
    }
    return count;
}

static int optimizer_allocate(struct optimizer *o, struct error *e)
{
    size_t floats = model_param_count(o->model), tensors = model_tensor_count(o->model);
    size_t pieces = tensors + floats / PIECE_FLOATS;
    size_t chunks = tensors + floats / OPTIM_FLOATS_IN_SUM;

    o->pieces = xcalloc(pieces, sizeof *o->pieces);
    o->chunks = xcalloc(chunks, sizeof *o->chunks);
    o->norms = xcalloc(pieces, sizeof *o->norms);
    o->squares = xcalloc(chunks, sizeof *o->squares);
    o->rules = xcalloc(tensors, sizeof *o->rules);
    for (size_t i = 0; i < o->state_count; i++) {
        size_t first = model_first_trained(o->model);
        struct memory_extent trained = {first * sizeof(float), (floats - first) * sizeof(float)};
        o->states[i] =
            memory_allocate_shared(floats * sizeof(float), &trained, 1, model_threads(o->model));
        if (!o->states[i])
            return error_set(e, ERR_NO_MEMORY, "no memory for the optimiser's %s: %zu MiB",
                             o->state_names[i], trained.bytes >> 20);
    }
    return 0;
}

int optimizer_create(struct model *m, const struct job_spec *spec, double peak_lr,
                     struct optimizer **out, struct error *e)
{
    struct optimizer *o = xcalloc(1, sizeof *o);

    o->magic = OPTIMIZER_MAGIC;
    o->model = m;
    o->kind = optimizer_kind_at((size_t)spec->optimizer.name);
    o->kernel = optim_kernel_of(spec->optimizer.name);
    o->keys = spec->optimizer;
    o->peak_lr = peak_lr;
    o->head_factor = spec->lr.head_factor > 0 ? spec->lr.head_factor : 1;
    o->loss_scale = spec->loss_scale > 0 ? (float)spec->loss_scale : 1;
    o->state_count = optimizer_states_of(spec, o->state_names);
    int status = optimizer_allocate(o, e);
    if (status) {
        optimizer_destroy(o);
        return status;
    }
    o->piece_count = optimizer_cut_tensors(o, PIECE_FLOATS, o->pieces);
    o->chunk_count = optimizer_cut_tensors(o, OPTIM_FLOATS_IN_SUM, o->chunks);
    *out = o;
    return 0;
}

void optimizer_destroy(struct optimizer *o)
{
    if (!o)
        return;
    assert_object_ends(o, OPTIMIZER_MAGIC);
    for (size_t i = 0; i < o->state_count; i++)
        free(o->states[i]);
    free(o->pieces);
    free(o->chunks);
    free(o->norms);
    free(o->squares);
    free(o->rules);
    free(o);
}

/* Call at the first read of a piece, while it is in cache. */
static void optimizer_divide_gradients(const struct optimizer *o, float *g, size_t n)
{
    float scale = o->loss_scale; /* a copy that stores cannot alias */

    for (size_t i = 0; i < n && scale != 1; i++)
        g[i] /= scale;
}

static void optimizer_clip_gradients(const struct optimizer *o, float *g, size_t n)
{
    float clip = o->clip;

    for (size_t i = 0; i < n && clip != 1; i++)
        g[i] *= clip;
}

static size_t optimizer_first_piece(const struct piece *pieces, size_t count, size_t at)
{
    size_t low = 0;

    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (pieces[middle].first < at)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* A thread's share of the pieces that begin in a range of parameters */
static struct parallel_range optimizer_pieces_of(const struct piece *pieces, size_t count,
                                                 struct parallel_range range,
                                                 struct parallel_share share)
{
    struct parallel_range floats = parallel_range(range.end - range.first, share);
    return (struct parallel_range){optimizer_first_piece(pieces, count, range.first + floats.first),
                                   optimizer_first_piece(pieces, count, range.first + floats.end)};
}

/* Accesses to each number: by the norms, and by the update */
static size_t optimizer_norm_accesses(const struct optimizer *o)
{
    return (size_t)o->kernel->wants_norms + (size_t)job_optimizer_norms_first(&o->keys);
}

static size_t optimizer_update_accesses(const struct optimizer *o)
{
    return 3 + 2 * o->state_count;
}

static void optimizer_sum_pieces(struct parallel_share share, void *context)
{
    struct optimizer *o = context;
    struct parallel_range all = {model_first_trained(o->model), model_param_count(o->model)};
    struct parallel_range mine = optimizer_pieces_of(o->pieces, o->piece_count, all, share);
    float *g = model_grads(o->model);
    const float *w = o->kernel->wants_norms ? model_params(o->model) : g;

    for (size_t i = mine.first; i < mine.end; i++) {
        const struct piece *p = &o->pieces[i];
        if (dry_run_moves(optimizer_norm_accesses(o) * (p->end - p->first)))
            continue;
        optimizer_divide_gradients(o, g + p->first, p->end - p->first);
        o->norms[i] = optim_norms_of(w + p->first, g + p->first, p->end - p->first);
    }
}

static void optimizer_update_chunks(struct parallel_share share, void *context)
{
    struct optimizer *o = context;
    struct parallel_range mine = optimizer_pieces_of(o->chunks, o->chunk_count, o->range, share);
    float *w = model_params(o->model);

    for (size_t i = mine.first; i < mine.end; i++) {
        const struct piece *p = &o->chunks[i];
        float *g = o->gradients + (p->first - o->range.first);
        float *state[OPTIMIZER_STATES_MAX] = {NULL};
        if (dry_run_moves(optimizer_update_accesses(o) * (p->end - p->first)))
            continue;
        for (size_t k = 0; k < o->state_count; k++)
            state[k] = o->states[k] + p->first;
        if (!job_optimizer_norms_first(&o->keys))
            optimizer_divide_gradients(o, g, p->end - p->first);
        optimizer_clip_gradients(o, g, p->end - p->first);
        o->squares[i] =
            o->kernel->update(&o->rules[p->tensor], w + p->first, state, g, p->end - p->first);
    }
}

double optimizer_end(const struct optimizer *o)
{
    double all = 0;

    for (size_t i = 0, chunk = 0; i < o->piece_count; i++) {
        double piece = 0;
        for (; chunk < o->chunk_count && o->chunks[chunk].first < o->pieces[i].end; chunk++)
            piece += o->squares[chunk];
        all += job_optimizer_norms_first(&o->keys) ? o->norms[i].g : piece;
    }
    return all;
}

/* torch.nn.utils.clip_grad_norm_ */
static float optimizer_clip(const struct optimizer *o)
{
    if (o->keys.clip_norm <= 0)
        return 1;
    return (float)fmin(1, o->keys.clip_norm / (sqrt(optimizer_end(o)) + 1e-6));
}

static void optimizer_make_rules(struct optimizer *o, double lr)
{
    for (size_t i = 0; i < o->piece_count;) {
        size_t tensor = o->pieces[i].tensor;
        bool spared = optimizer_is_spared(o, model_tensor(o->model, tensor)->kind);
        bool head = model_tensor(o->model, tensor)->offset >= model_classifier_offset(o->model);
        double factor = head ? o->head_factor : 1;
        struct optim_step step = {.lr = factor * lr,
                                  .last_lr = factor * o->last_lr,
                                  .peak_lr = factor * o->peak_lr,
                                  .number = o->steps + 1,
                                  .decays = !spared || o->keys.decay_bn,
                                  .excluded = spared};
        for (; i < o->piece_count && o->pieces[i].tensor == tensor; i++) {
            step.norms.w += o->norms[i].w;
            step.norms.g += o->norms[i].g;
        }
        step.norms.g *= (double)o->clip * o->clip;
        o->rules[tensor] = optim_rule_of(o->keys.name, &o->keys, &step);
    }
}

size_t optimizer_cut(void *optimizer, size_t at)
{
    const struct optimizer *o = optimizer;
    size_t first = model_first_trained(o->model), end = model_param_count(o->model);
    size_t chunk = optimizer_first_piece(o->chunks, o->chunk_count, first + at);
    return (chunk < o->chunk_count ? o->chunks[chunk].first : end) - first;
}

void optimizer_begin(struct optimizer *o, double lr)
{
    assert_object(o, OPTIMIZER_MAGIC);

    if (job_optimizer_norms_first(&o->keys))
        parallel_team(model_threads(o->model), optimizer_sum_pieces, o);
    size_t trained = model_param_count(o->model) - model_first_trained(o->model);
    model_count_bytes(o->model, (double)(sizeof(float) * trained * optimizer_norm_accesses(o)));
    o->clip = optimizer_clip(o);
    optimizer_make_rules(o, lr);
    memset(o->squares, 0, o->chunk_count * sizeof *o->squares);
    o->steps++;
    o->last_lr = lr;
}

void optimizer_update(void *optimizer, size_t first, size_t end, float *gradients)
{
    struct optimizer *o = optimizer;

    size_t from = model_first_trained(o->model);

    o->range = (struct parallel_range){from + first, from + end};
    o->gradients = gradients;
    parallel_team(model_threads(o->model), optimizer_update_chunks, o);
    model_count_bytes(o->model,
                      (double)(sizeof(float) * (end - first) * optimizer_update_accesses(o)));
}

double *optimizer_squares(const struct optimizer *o, size_t *count)
{
    *count = o->chunk_count;
    return o->squares;
}

double optimizer_step(struct optimizer *o, double lr)
{
    optimizer_begin(o, lr);
    size_t first = model_first_trained(o->model);
    optimizer_update(o, 0, model_param_count(o->model) - first, model_grads(o->model) + first);
    return optimizer_end(o);
}

void optimizer_set_place(struct optimizer *o, int64_t steps, double last_lr)
{
    assert_object(o, OPTIMIZER_MAGIC);
    o->steps = steps;
    o->last_lr = last_lr;
}

size_t optimizer_states(const struct optimizer *o)
{
    return o->state_count;
}

float *optimizer_state(struct optimizer *o, size_t i)
{
    return o->states[i];
}

static size_t optimizer_list_buffers(const struct optimizer *o,
                                     struct model_buffer buffers[OPTIMIZER_STATES_MAX])
{
    for (size_t i = 0; i < o->state_count; i++)
        buffers[i] = (struct model_buffer){o->state_names[i], o->states[i]};
    return o->state_count;
}

int optimizer_save(struct optimizer *o, int64_t step, const char *path, struct error *e)
{
    struct model_buffer buffers[OPTIMIZER_STATES_MAX];
    char steps[32];
    struct safetensors_meta meta[] = {
        {"format",    "pt"         },
        {"optimizer", o->kind->name},
        {"step",      steps        }
    };

    assert_object(o, OPTIMIZER_MAGIC);
    snprintf(steps, sizeof steps, "%lld", (long long)step);
    return model_save_buffers(o->model, buffers, optimizer_list_buffers(o, buffers), path, meta, 3,
                              e);
}

static int optimizer_check_name(const struct optimizer *o, const char *path, struct error *e)
{
    struct safetensors *file;
    int status = safetensors_open(path, &file, e);

    if (status)
        return status;
    const char *name = safetensors_metadata(file, "optimizer");
    if (!name || strcmp(name, o->kind->name))
        status = error_set(e, ERR_CONFLICT, "%s is the state of %s, the job's optimizer.name is %s",
                           path, name ? name : "an unknown optimiser", o->kind->name);
    safetensors_close(file);
    return status;
}

int optimizer_load(struct optimizer *o, const char *path, struct error *e)
{
    struct model_buffer buffers[OPTIMIZER_STATES_MAX];

    assert_object(o, OPTIMIZER_MAGIC);
    int status = optimizer_check_name(o, path, e);

    return status
               ? status
               : model_load_buffers(o->model, buffers, optimizer_list_buffers(o, buffers), path, e);
}
