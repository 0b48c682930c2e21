#include "tests/unit/worker/compare.h"
#include "tests/unit/worker/optim/small_model.h"
#include "worker/optim/sgd.h"

Test(sgd, update_equals_the_plain_one)
{
    static const size_t sizes[] = {1, 15, 16, 4096, 10001};
    for (int nesterov = 0; nesterov < 2; nesterov++)
        for (size_t i = 0; i < 5; i++) {
            size_t n = sizes[i];
            struct sgd_rule r = {0.1f, 0.9f, 0.01f, nesterov};
            float *w = noise(n, 1), *v = noise(n, 2), *g = noise(n, 3), *w2 = copy_of(w, n),
                  *v2 = copy_of(v, n);
            double have = sgd_update(&r, w, v, g, n), want = sgd_update_reference(&r, w2, v2, g, n);
            cr_assert_float_eq(have, want, 1e-5 * want);
            assert_close(w, w2, n, 1e-6, "w of %zu", n);
            assert_close(v, v2, n, 1e-6, "v of %zu", n);
            free(w);
            free(v);
            free(g);
            free(w2);
            free(v2);
        }
}

/* With momentum 0, lr 1 and gradient 0 only the decay moves a weight: w -= decay w. */
static void check_decay(bool decay_bn)
{
    struct model *m = small_model(2);
    struct sgd_config c = {.weight_decay = 0.5, .decay_bn = decay_bn};
    struct sgd *s;
    struct error e;
    size_t stats = model_stat_count(m);
    float *before = copy_of(model_params(m), model_param_count(m)),
          *old_stats = copy_of(model_stats(m), stats);

    cr_assert_eq(sgd_create(m, &c, &s, &e), 0);
    cr_assert_eq(sgd_step(s, 1), 0);
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const struct model_tensor *t = model_tensor(m, i);
        bool bn = t->kind == MODEL_BN_GAMMA || t->kind == MODEL_BN_BETA;
        if (t->kind == MODEL_BN_MEAN || t->kind == MODEL_BN_VAR)
            continue;
        for (size_t j = 0; j < t->count; j++)
            cr_assert_float_eq(model_params(m)[t->offset + j],
                               before[t->offset + j] * (bn && !decay_bn ? 1 : 0.5f), 1e-7, "%s",
                               t->name);
    }
    cr_assert(!memcmp(old_stats, model_stats(m), stats * sizeof(float)));
    free(before);
    free(old_stats);
    sgd_destroy(s);
    model_destroy(m);
}

Test(sgd, decays_weights_and_fc_bias_but_batch_norm_only_when_asked)
{
    check_decay(false);
    check_decay(true);
}

Test(sgd, returns_the_squared_norm_of_the_gradient)
{
    struct model *m = small_model(1);
    struct sgd_config c = {.momentum = 0.9, .weight_decay = 1};
    struct sgd *s;
    struct error e;
    double want = 0;

    cr_assert_eq(sgd_create(m, &c, &s, &e), 0);
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const struct model_tensor *t = model_tensor(m, i);
        if (t->kind != MODEL_FC_BIAS && t->kind != MODEL_BN_BETA)
            continue;
        for (size_t j = 0; j < t->count; j++)
            model_grads(m)[t->offset + j] = 2, want += 4;
    }
    cr_assert_float_eq(sgd_step(s, 0), want, 1e-6 * want);
    sgd_destroy(s);
    model_destroy(m);
}
