#include "common/job/recipe/optimizers.h"

#include <stdio.h>
#include <string.h>

#define MOMENTUM_STATE "momentum"

/* Default rates are Cray's table of usual initial rates (Scaling Deep Learning, ALCF 2018, after
 * Keras); other defaults are PyTorch's. Only the states needed by the job's keys are allocated
 * (optimizer_states_of). */
/* clang-format off */
static const struct optimizer_kind kinds[] = {
    [JOB_OPTIMIZER_SGD] = {.name = "sgd", .keys = " momentum nesterov momentum_correction ", .states = {MOMENTUM_STATE}},
    [JOB_OPTIMIZER_SGDW] = {.name = "sgdw", .keys = " momentum nesterov ", .states = {MOMENTUM_STATE},
        .defaults = {{"/optimizer/weight_decay", "5e-4"}}},
    [JOB_OPTIMIZER_LARS] = {.name = "lars", .spares_biases = true, .keys = " momentum nesterov momentum_correction lars_eta ",
        .states = {MOMENTUM_STATE}},
    [JOB_OPTIMIZER_ADAM] = {.name = "adam", .adaptive = true, .keys = " beta1 beta2 eps ", .states = {"exp_avg", "exp_avg_sq"},
        .defaults = {{"/lr/base", "0.001"}, {"/lr/scaling", "\"sqrt\""}, {"/optimizer/weight_decay", "0"}}},
    [JOB_OPTIMIZER_ADAMW] = {.name = "adamw", .adaptive = true, .keys = " beta1 beta2 eps ", .states = {"exp_avg", "exp_avg_sq"},
        .defaults = {{"/lr/base", "0.001"}, {"/lr/scaling", "\"sqrt\""}, {"/optimizer/weight_decay", "0.01"}}},
    [JOB_OPTIMIZER_RMSPROP] = {.name = "rmsprop", .adaptive = true, .keys = " alpha eps momentum centered ",
        .states = {"square_avg", "grad_avg", MOMENTUM_STATE},
        .defaults = {{"/lr/base", "0.001"}, {"/lr/scaling", "\"sqrt\""}, {"/optimizer/weight_decay", "0"}, {"/optimizer/momentum", "0"}}},
    [JOB_OPTIMIZER_ADAGRAD] = {.name = "adagrad", .adaptive = true, .keys = " lr_decay eps ", .states = {"sum"},
        .defaults = {{"/lr/base", "0.01"}, {"/lr/scaling", "\"sqrt\""}, {"/optimizer/weight_decay", "0"}, {"/optimizer/eps", "1e-10"}}},
    [JOB_OPTIMIZER_ADADELTA] = {.name = "adadelta", .adaptive = true, .keys = " rho eps ", .states = {"square_avg", "acc_delta"},
        .defaults = {{"/lr/base", "1"}, {"/lr/scaling", "\"sqrt\""}, {"/optimizer/weight_decay", "0"}, {"/optimizer/eps", "1e-6"}}},
};
/* clang-format on */

/* Keys used by some optimisers only; the other keys of the group apply to all. */
static const char special_keys[] =
    " momentum nesterov momentum_correction lars_eta beta1 beta2 eps "
    "alpha centered lr_decay rho ";

const struct optimizer_kind *optimizer_kind_at(size_t i)
{
    return i < sizeof kinds / sizeof kinds[0] ? &kinds[i] : NULL;
}

static bool optimizer_lists_key(const char *keys, const char *key)
{
    char word[64];

    snprintf(word, sizeof word, " %s ", key);
    return strstr(keys, word) != NULL;
}

bool optimizer_uses(const struct optimizer_kind *kind, const char *pointer)
{
    static const char group[] = "/optimizer/";

    if (strncmp(pointer, group, sizeof group - 1) != 0)
        return true;
    const char *key = pointer + sizeof group - 1;
    return optimizer_lists_key(kind->keys, key) || !optimizer_lists_key(special_keys, key);
}

const char *optimizer_default(const struct optimizer_kind *kind, const char *pointer)
{
    for (size_t i = 0; i < OPTIMIZER_DEFAULTS_MAX && kind->defaults[i].pointer; i++)
        if (strcmp(kind->defaults[i].pointer, pointer) == 0)
            return kind->defaults[i].value;
    return NULL;
}

/* Like PyTorch's, RMSProp needs its mean only if centered and its velocity only with momentum. */
static bool optimizers_needs_state(const struct job_spec *spec, const char *state)
{
    if (spec->optimizer.name != JOB_OPTIMIZER_RMSPROP)
        return true;
    if (strcmp(state, "grad_avg") == 0)
        return spec->optimizer.centered;
    return strcmp(state, MOMENTUM_STATE) != 0 || spec->optimizer.momentum > 0;
}

size_t optimizer_states_of(const struct job_spec *spec, const char *names[OPTIMIZER_STATES_MAX])
{
    const struct optimizer_kind *kind = &kinds[spec->optimizer.name];
    size_t count = 0;

    for (size_t i = 0; kind->states[i]; i++)
        if (optimizers_needs_state(spec, kind->states[i]))
            names[count++] = kind->states[i];
    return count;
}
