#include "tests/reference/reference.h"
#include "tests/unit/worker/compare.h"

#include <math.h>

#include "common/job/recipe/optimizers.h"
#include "tests/unit/worker/optim/small_model.h"
#include "worker/model/weights.h"
#include "worker/optim/optimizer.h"
#include "worker/optim/update.h"

#define PEAK 0.1 /* that of the schedule */

static const struct job_optimizer_keys common = {.momentum = 0.9,
                                                 .weight_decay = 1e-2,
                                                 .lars_eta = 0.01,
                                                 .beta1 = 0.9,
                                                 .beta2 = 0.999,
                                                 .eps = 1e-6,
                                                 .alpha = 0.9,
                                                 .lr_decay = 0.1,
                                                 .rho = 0.9};

/* Every optimiser, with its switches: n nesterov, c correction, d decay_bn, 0 no momentum, m
 * centered, k clipped gradients. */
static const struct {
    enum job_optimizer name;
    const char *switches;
} variants[] = {
    {JOB_OPTIMIZER_SGD,      ""  },
    {JOB_OPTIMIZER_SGD,      "nd"},
    {JOB_OPTIMIZER_SGD,      "k" },
    {JOB_OPTIMIZER_SGDW,     ""  },
    {JOB_OPTIMIZER_SGDW,     "nd"},
    {JOB_OPTIMIZER_LARS,     ""  },
    {JOB_OPTIMIZER_LARS,     "nd"},
    {JOB_OPTIMIZER_LARS,     "nc"},
    {JOB_OPTIMIZER_LARS,     "k" },
    {JOB_OPTIMIZER_ADAM,     ""  },
    {JOB_OPTIMIZER_ADAM,     "d" },
    {JOB_OPTIMIZER_ADAMW,    ""  },
    {JOB_OPTIMIZER_RMSPROP,  ""  },
    {JOB_OPTIMIZER_RMSPROP,  "0d"},
    {JOB_OPTIMIZER_RMSPROP,  "m" },
    {JOB_OPTIMIZER_RMSPROP,  "m0"},
    {JOB_OPTIMIZER_ADAGRAD,  ""  },
    {JOB_OPTIMIZER_ADADELTA, "d" },
    {JOB_OPTIMIZER_ADADELTA, "k" },
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

struct variant {
    struct job_spec spec;
    char words[80];
};

static struct variant variant_of(enum job_optimizer name, const char *switches)
{
    struct variant v = {.spec = {.optimizer = common}};
    struct job_optimizer_keys *keys = &v.spec.optimizer;

    keys->name = name;
    keys->nesterov = strchr(switches, 'n');
    keys->momentum_correction = strchr(switches, 'c');
    keys->decay_bn = strchr(switches, 'd');
    keys->centered = strchr(switches, 'm');
    keys->clip_norm = strchr(switches, 'k') ? 0.5 : 0;
    if (strchr(switches, '0'))
        keys->momentum = 0;
    snprintf(v.words, sizeof v.words, "%s \"%s\"", optimizer_kind_at((size_t)name)->name, switches);
    return v;
}

static struct variant variant_at(int i)
{
    return variant_of(variants[i].name, variants[i].switches);
}

/* The copy of the gradients that a step uses; sets squares to their sum of squares before. */
static float *clipped_gradients(struct model *m, const struct job_optimizer_keys *keys,
                                double *squares)
{
    size_t n = model_param_count(m);
    float *g = copy_of(model_grads(m), n);

    *squares = 0;
    for (size_t i = 0; i < n; i++)
        *squares += (double)g[i] * g[i];
    double factor = keys->clip_norm > 0 ? keys->clip_norm / (sqrt(*squares) + 1e-6) : 1;
    cr_assert(keys->clip_norm == 0 || factor < 0.9);
    for (size_t i = 0; i < n; i++)
        g[i] *= (float)factor;
    return g;
}

static bool has_statistics(const struct model_tensor *t)
{
    return t->kind == MODEL_BN_MEAN || t->kind == MODEL_BN_VAR;
}

static void fill_gradients(struct model *m, int64_t step)
{
    float *g = noise(model_param_count(m), step);
    memset(model_grads(m), 0, model_param_count(m) * sizeof(float));
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const struct model_tensor *t = model_tensor(m, i);
        if (!has_statistics(t) && i % 7 != 3) /* some have none */
            memcpy(model_grads(m) + t->offset, g + t->offset, t->count * sizeof(float));
    }
    free(g);
}

/* The definition's step of one tensor. */
static void step_by_definition(const struct job_spec *spec, const struct model *m, size_t tensor,
                               int step, double lr, double last_lr, const float *g, float *w,
                               float *const states[])
{
    const struct model_tensor *t = model_tensor(m, tensor);
    bool bn = t->kind == MODEL_BN_GAMMA || t->kind == MODEL_BN_BETA;
    bool excluded = bn || (t->kind == MODEL_FC_BIAS && spec->optimizer.name == JOB_OPTIMIZER_LARS);
    struct optim_step s = {.lr = lr,
                           .last_lr = last_lr,
                           .peak_lr = PEAK,
                           .number = step + 1,
                           .decays = !excluded || spec->optimizer.decay_bn,
                           .excluded = excluded};
    float *state[OPTIMIZER_STATES_MAX];
    for (int k = 0; k < OPTIMIZER_STATES_MAX; k++)
        state[k] = states[k] + t->offset;
    optim_reference_of(spec->optimizer.name)(&spec->optimizer, &s, w + t->offset, state,
                                             g + t->offset, t->count);
}

static void compare_steps(const struct variant *v, int threads)
{
    struct model *m = small_model(threads);
    struct optimizer *o;
    struct error e;
    size_t n = model_param_count(m);
    float *w = copy_of(model_params(m), n), *states[OPTIMIZER_STATES_MAX];

    for (int k = 0; k < OPTIMIZER_STATES_MAX; k++)
        states[k] = calloc(n, sizeof(float));
    cr_assert_eq(optimizer_create(m, &v->spec, PEAK, &o, &e), 0);
    for (int step = 0; step < 3; step++) {
        double lr = 0.01 * (step + 1), squares;
        fill_gradients(m, step);
        float *g = clipped_gradients(m, &v->spec.optimizer, &squares);
        for (size_t i = 0; i < model_tensor_count(m); i++)
            if (!has_statistics(model_tensor(m, i)))
                step_by_definition(&v->spec, m, i, step, lr, 0.01 * step, g, w, states);
        free(g);
        double have = optimizer_step(o, lr); /* the macro below evaluates twice */
        cr_assert_float_eq(have, squares, 1e-6 * squares, "%s", v->words);
        for (size_t i = 0; i < model_tensor_count(m); i++) {
            const struct model_tensor *t = model_tensor(m, i);
            if (has_statistics(t))
                continue;
            assert_close(model_params(m) + t->offset, w + t->offset, t->count, 4e-6, "%s of %s",
                         t->name, v->words);
            for (size_t k = 0; k < optimizer_states(o); k++)
                assert_close(optimizer_state(o, k) + t->offset, states[k] + t->offset, t->count,
                             4e-6, "state %zu of %s of %s", k, t->name, v->words);
        }
    }
    optimizer_destroy(o);
    model_destroy(m);
    free(w);
    for (int k = 0; k < OPTIMIZER_STATES_MAX; k++)
        free(states[k]);
}

Test(optimizer, steps_equal_the_definition, .timeout = 300)
{
    for (int i = 0; i < VARIANTS; i++) {
        struct variant v = variant_at(i);
        compare_steps(&v, 1 + i % 2);
    }
}

/* Lengths that are no multiple of a vector, and one longer than a partial sum. */
Test(optimizer, updates_of_any_length_equal_the_reference)
{
    static const size_t sizes[] = {1, 15, 16, 4096, 10001};
    for (int j = 0; j < VARIANTS; j++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            size_t n = sizes[i];
            struct variant v = variant_at(j);
            float *g = noise(n, 3), *w = noise(n, 1), *w2 = copy_of(w, n);
            float *state[OPTIMIZER_STATES_MAX], *state2[OPTIMIZER_STATES_MAX];
            for (int k = 0; k < OPTIMIZER_STATES_MAX; k++) {
                state[k] = calloc(n, sizeof(float));
                state2[k] = calloc(n, sizeof(float));
            }
            struct optim_step s = {.lr = 0.1,
                                   .peak_lr = 0.2,
                                   .number = 1,
                                   .decays = true,
                                   .norms = optim_norms_of(w, g, n)};
            struct optim_rule r = optim_rule_of(v.spec.optimizer.name, &v.spec.optimizer, &s);
            optim_kernel_of(v.spec.optimizer.name)->update(&r, w, state, g, n);
            optim_reference_of(v.spec.optimizer.name)(&v.spec.optimizer, &s, w2, state2, g, n);
            assert_close(w, w2, n, 2e-6, "%zu weights of %s", n, v.words);
            for (int k = 0; k < OPTIMIZER_STATES_MAX; k++) {
                assert_close(state[k], state2[k], n, 2e-6, "state %d of %s", k, v.words);
                free(state[k]);
                free(state2[k]);
            }
            free(g);
            free(w);
            free(w2);
        }
}

Test(optimizer, threads_do_not_change_the_bits)
{
    for (int i = 0; i < VARIANTS; i++) {
        struct variant v = variant_at(i);
        static const int threads[2] = {1, 5};
        struct model *m[2];
        double squares[2];
        struct error e;
        for (int k = 0; k < 2; k++) {
            struct optimizer *o;
            m[k] = small_model(threads[k]);
            fill_gradients(m[k], 5);
            cr_assert_eq(optimizer_create(m[k], &v.spec, PEAK, &o, &e), 0);
            squares[k] = optimizer_step(o, 0.1);
            optimizer_destroy(o);
        }
        cr_assert_eq(squares[0], squares[1], "%s", v.words);
        cr_assert(!memcmp(model_params(m[0]), model_params(m[1]),
                          model_param_count(m[0]) * sizeof(float)),
                  "%s", v.words);
        model_destroy(m[0]);
        model_destroy(m[1]);
    }
}

Test(optimizer, gradients_below_the_limit_are_not_clipped)
{
    struct variant v[2] = {variant_of(JOB_OPTIMIZER_SGD, ""), variant_of(JOB_OPTIMIZER_SGD, "")};
    struct model *m[2];
    struct error e;

    v[1].spec.optimizer.clip_norm = 1e6;
    for (int k = 0; k < 2; k++) {
        struct optimizer *o;
        m[k] = small_model(2);
        fill_gradients(m[k], 5);
        cr_assert_eq(optimizer_create(m[k], &v[k].spec, PEAK, &o, &e), 0);
        cr_assert_gt(optimizer_step(o, 0.1), 1);
        optimizer_destroy(o);
    }
    cr_assert(
        !memcmp(model_params(m[0]), model_params(m[1]), model_param_count(m[0]) * sizeof(float)));
    model_destroy(m[0]);
    model_destroy(m[1]);
}

/* With momentum 0, lr and peak 1, and gradient 0 only the decay moves a weight. */
static void check_decay(int name, bool decay_bn)
{
    struct model *m = small_model(2);
    struct job_spec spec = {
        .optimizer = {.name = (enum job_optimizer)name,
                      .weight_decay = 0.5,
                      .lars_eta = 0.01,
                      .decay_bn = decay_bn,
                      .eps = 1e-6,
                      .rho = 0.9,
                      .alpha = 0.9}
    };
    struct optimizer *o;
    struct error e;
    size_t stats = model_stat_count(m);
    float *old_stats = copy_of(model_stats(m), stats);

    for (size_t i = 0; i < model_param_count(m); i++)
        model_params(m)[i] = 1;
    cr_assert_eq(optimizer_create(m, &spec, 1, &o, &e), 0);
    cr_assert_eq(optimizer_step(o, 1), 0);
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const struct model_tensor *t = model_tensor(m, i);
        bool spared = t->kind == MODEL_BN_GAMMA || t->kind == MODEL_BN_BETA ||
                      (t->kind == MODEL_FC_BIAS && name == JOB_OPTIMIZER_LARS);
        bool lars_weight = name == JOB_OPTIMIZER_LARS && t->kind != MODEL_FC_BIAS &&
                           t->kind != MODEL_BN_GAMMA && t->kind != MODEL_BN_BETA;
        if (has_statistics(t))
            continue;
        float w = model_params(m)[t->offset];
        if (spared && !decay_bn)
            cr_assert_eq(w, 1, "%s of %s is not decayed", t->name,
                         optimizer_kind_at((size_t)name)->name);
        else if (name <= JOB_OPTIMIZER_SGDW || name == JOB_OPTIMIZER_ADAMW || lars_weight)
            cr_assert_float_eq(w, 0.5, 1e-6, "%s of %s is decayed: %g", t->name,
                               optimizer_kind_at((size_t)name)->name, (double)w);
        else
            cr_assert_lt(w, 1, "%s of %s is decayed", t->name,
                         optimizer_kind_at((size_t)name)->name);
    }
    cr_assert(!memcmp(old_stats, model_stats(m), stats * sizeof(float)));
    free(old_stats);
    optimizer_destroy(o);
    model_destroy(m);
}

Test(optimizer, decays_weights_and_fc_bias_and_batch_norm_only_if_configured)
{
    for (int name = 0; optimizer_kind_at((size_t)name); name++) {
        check_decay(name, false);
        check_decay(name, true);
    }
}

/* Four steps, and two and two with a file in between. */
static void check_resumed(const struct variant *v, const char *path)
{
    struct model *whole = small_model(1), *cut = small_model(1);
    struct optimizer *o, *p;
    struct error e;
    size_t bytes = model_param_count(whole) * sizeof(float);

    cr_assert_eq(optimizer_create(whole, &v->spec, PEAK, &o, &e), 0);
    cr_assert_eq(optimizer_create(cut, &v->spec, PEAK, &p, &e), 0);
    for (int step = 0; step < 4; step++) {
        double lr = 0.01 * (step + 1);
        fill_gradients(whole, step);
        fill_gradients(cut, step);
        if (step == 2) {
            cr_assert_eq(optimizer_save(p, 2, path, &e), 0, "%s", e.text);
            optimizer_destroy(p);
            cr_assert_eq(optimizer_create(cut, &v->spec, PEAK, &p, &e), 0);
            cr_assert_eq(optimizer_load(p, path, &e), 0, "%s", e.text);
            optimizer_set_place(p, 2, 0.02);
        }
        optimizer_step(o, lr);
        optimizer_step(p, lr);
    }
    cr_assert(!memcmp(model_params(whole), model_params(cut), bytes), "%s", v->words);
    for (size_t k = 0; k < optimizer_states(o); k++)
        cr_assert(!memcmp(optimizer_state(o, k), optimizer_state(p, k), bytes), "%s", v->words);
    optimizer_destroy(o);
    optimizer_destroy(p);
    model_destroy(whole);
    model_destroy(cut);
}

Test(optimizer, goes_on_from_a_file_to_the_bit, .timeout = 300)
{
    char path[] = "/tmp/optimizer-test-XXXXXX";
    cr_assert_geq(mkstemp(path), 0);
    for (int i = 0; i < VARIANTS; i++) {
        struct variant v = variant_at(i);
        check_resumed(&v, path);
    }
    remove(path);
}

Test(optimizer, state_of_another_optimizer_is_refused)
{
    struct model *m = small_model(1);
    struct variant lars = variant_of(JOB_OPTIMIZER_LARS, ""),
                   sgd = variant_of(JOB_OPTIMIZER_SGD, "");
    struct optimizer *o;
    struct error e;
    char path[] = "/tmp/optimizer-test-XXXXXX";

    cr_assert_geq(mkstemp(path), 0);
    cr_assert_eq(optimizer_create(m, &lars.spec, PEAK, &o, &e), 0);
    cr_assert_eq(optimizer_save(o, 7, path, &e), 0, "%s", e.text);
    optimizer_destroy(o);
    cr_assert_eq(optimizer_create(m, &sgd.spec, PEAK, &o, &e), 0);
    cr_assert_eq(optimizer_load(o, path, &e), -ERR_CONFLICT);
    cr_assert_not_null(strstr(e.text, "is the state of lars, the job's optimizer.name is sgd"));
    optimizer_destroy(o);
    model_destroy(m);
    remove(path);
}

Test(lars, trust_is_one_where_a_norm_is_zero)
{
    cr_assert_eq(lars_trust(&(struct optim_norms){0, 4}, 0.001, 0.1), 1);
    cr_assert_eq(lars_trust(&(struct optim_norms){4, 0}, 0.001, 0.1), 1);
    cr_assert_float_eq(lars_trust(&(struct optim_norms){9, 4}, 0.001, 0.1), 0.001 * 3 / (2 + 0.3),
                       1e-18);
}

Test(lars, norms_are_in_double)
{
    size_t n = 1000003;
    float *w = malloc(n * sizeof *w), *g = malloc(n * sizeof *g);
    for (size_t i = 0; i < n; i++)
        w[i] = 1e-3f, g[i] = i ? 1e-5f : 1.0f; /* in float the small ones would be lost */
    struct optim_norms norms = optim_norms_of(w, g, n);
    double x = 1e-3f, y = 1e-5f;
    cr_assert_float_eq(norms.w, (double)n * x * x, 1e-9 * norms.w);
    cr_assert_float_eq(norms.g - 1, (double)(n - 1) * y * y, 1e-9);
    free(w);
    free(g);
}
