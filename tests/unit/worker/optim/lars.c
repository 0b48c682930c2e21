#include "tests/unit/worker/compare.h"
#include "tests/unit/worker/optim/small_model.h"
#include "worker/optim/lars.h"
#include "worker/optim/optimizer.h"

static void fill_gradients(struct model *m, int64_t step)
{
    float *g = noise(model_param_count(m), step);
    memset(model_grads(m), 0, model_param_count(m) * sizeof(float));
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const struct model_tensor *t = model_tensor(m, i);
        if (t->kind != MODEL_BN_MEAN && t->kind != MODEL_BN_VAR && i % 7 != 3) /* some have none */
            memcpy(model_grads(m) + t->offset, g + t->offset, t->count * sizeof(float));
    }
    free(g);
}

/* Tensor by tensor against the definition. */
static void compare_steps(bool nesterov, bool decay_bn, int threads)
{
    struct lars_config c = {.momentum = 0.9,
                            .nesterov = nesterov,
                            .weight_decay = 1e-2,
                            .decay_bn = decay_bn,
                            .eta = 0.01};
    struct model *m = small_model(threads);
    struct lars *l;
    struct error e;
    size_t n = model_param_count(m);
    float *w = copy_of(model_params(m), n), *v = calloc(n, sizeof *v);

    cr_assert_eq(lars_create(m, &c, &l, &e), 0);
    for (int step = 0; step < 3; step++) {
        double lr = 0.5 * (step + 1), squares = 0;
        fill_gradients(m, step);
        for (size_t i = 0; i < n; i++)
            squares += (double)model_grads(m)[i] * model_grads(m)[i];
        for (size_t i = 0; i < model_tensor_count(m); i++) {
            const struct model_tensor *t = model_tensor(m, i);
            bool excluded =
                t->kind == MODEL_BN_GAMMA || t->kind == MODEL_BN_BETA || t->kind == MODEL_FC_BIAS;
            if (t->kind != MODEL_BN_MEAN && t->kind != MODEL_BN_VAR)
                lars_update_reference(&c, excluded, lr, w + t->offset, v + t->offset,
                                      model_grads(m) + t->offset, t->count);
        }
        double have = lars_step(l, lr); /* the macro below evaluates twice */
        cr_assert_float_eq(have, squares, 1e-9 * squares);
        for (size_t i = 0; i < model_tensor_count(m); i++) {
            const struct model_tensor *t = model_tensor(m, i);
            if (t->kind == MODEL_BN_MEAN || t->kind == MODEL_BN_VAR)
                continue;
            assert_close(model_params(m) + t->offset, w + t->offset, t->count, 2e-6, "%s", t->name);
            assert_close(lars_momentum(l) + t->offset, v + t->offset, t->count, 2e-6,
                         "momentum of %s", t->name);
        }
    }
    lars_destroy(l);
    model_destroy(m);
    free(w);
    free(v);
}

Test(lars, steps_equal_the_definition)
{
    compare_steps(false, false, 1);
    compare_steps(true, true, 2);
}

Test(lars, trust_is_one_where_a_norm_is_zero)
{
    cr_assert_eq(lars_trust(&(struct lars_norms){0, 4}, 0.001, 0.1), 1);
    cr_assert_eq(lars_trust(&(struct lars_norms){4, 0}, 0.001, 0.1), 1);
    cr_assert_float_eq(lars_trust(&(struct lars_norms){9, 4}, 0.001, 0.1), 0.001 * 3 / (2 + 0.3),
                       1e-18);
}

Test(lars, norms_are_in_double)
{
    size_t n = 1000003;
    float *w = malloc(n * sizeof *w), *g = malloc(n * sizeof *g);
    for (size_t i = 0; i < n; i++)
        w[i] = 1e-3f, g[i] = i ? 1e-5f : 1.0f; /* in float the small ones would be lost */
    struct lars_norms norms = lars_norms_of(w, g, n);
    double x = 1e-3f, y = 1e-5f;
    cr_assert_float_eq(norms.w, (double)n * x * x, 1e-9 * norms.w);
    cr_assert_float_eq(norms.g - 1, (double)(n - 1) * y * y, 1e-9);
    free(w);
    free(g);
}

Test(lars, threads_do_not_change_the_bits)
{
    struct lars_config c = {.momentum = 0.9, .weight_decay = 1e-4, .eta = 0.001};
    struct model *m[2];
    struct error e;
    for (int k = 0; k < 2; k++) {
        struct lars *l;
        m[k] = small_model(k + 1);
        fill_gradients(m[k], 5);
        cr_assert_eq(lars_create(m[k], &c, &l, &e), 0);
        lars_step(l, 2);
        lars_destroy(l);
    }
    cr_assert(
        !memcmp(model_params(m[0]), model_params(m[1]), model_param_count(m[0]) * sizeof(float)));
    model_destroy(m[0]);
    model_destroy(m[1]);
}

Test(lars, its_state_comes_back_from_a_file_and_is_not_mistaken_for_sgd)
{
    struct model *m = small_model(1);
    struct job_spec spec = {
        .optimizer = {.name = JOB_OPTIMIZER_LARS, .momentum = 0.9, .lars_eta = 0.001}
    };
    struct optimizer *o;
    struct error e;
    char path[] = "/tmp/lars-test-XXXXXX";
    size_t n = model_param_count(m);

    cr_assert_geq(mkstemp(path), 0);
    fill_gradients(m, 1);
    cr_assert_eq(optimizer_create(m, &spec, &o, &e), 0);
    optimizer_step(o, 1);
    float *kept = copy_of(optimizer_momentum(o), n);
    cr_assert_eq(optimizer_save(o, 7, path, &e), 0, "%s", e.text);
    memset(optimizer_momentum(o), 0, n * sizeof(float));
    cr_assert_eq(optimizer_load(o, path, &e), 0, "%s", e.text);
    cr_assert(!memcmp(optimizer_momentum(o), kept, n * sizeof(float)));
    optimizer_destroy(o);
    spec.optimizer.name = JOB_OPTIMIZER_SGD;
    cr_assert_eq(optimizer_create(m, &spec, &o, &e), 0);
    cr_assert_eq(optimizer_load(o, path, &e), -ERR_CONFLICT);
    cr_assert_not_null(strstr(e.text, "is the state of lars, the job's optimizer.name is sgd"));
    optimizer_destroy(o);
    model_destroy(m);
    free(kept);
    remove(path);
}
