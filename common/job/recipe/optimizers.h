/* The table of optimisers, for planner, documents and engine. Arithmetic: worker/optim/ */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/job/job_spec.h"

#define OPTIMIZER_STATES_MAX   3
#define OPTIMIZER_DEFAULTS_MAX 6

struct optimizer_kind {
    const char *name;   /* optimizer.name */
    bool adaptive;      /* divides by the size of the gradients, so each weight has its own rate */
    bool spares_biases; /* the classifier's bias is treated like gamma and beta (optimizer.decay_bn)
                         */
    const char *
        keys; /* keys of the group optimizer that only some optimisers use: " momentum nesterov " */
    const char
        *states[OPTIMIZER_STATES_MAX + 1]; /* state tensors, with an element for each weight */
    struct optimizer_default {
        const char *pointer, *value; /* default of a key with this optimiser, as JSON text */
    } defaults[OPTIMIZER_DEFAULTS_MAX];
};

/* Indexed by enum job_optimizer; NULL at the end. */
const struct optimizer_kind *optimizer_kind_at(size_t i);

/* Returns whether it uses the key ("/optimizer/beta1"); true for keys of other groups. */
bool optimizer_uses(const struct optimizer_kind *kind, const char *pointer);

/* Returns the default of a key for this optimiser; NULL: that of the table of keys. */
const char *optimizer_default(const struct optimizer_kind *kind, const char *pointer);

/* Sets names to the state tensors of the job's optimiser. Returns their number. */
size_t optimizer_states_of(const struct job_spec *spec, const char *names[OPTIMIZER_STATES_MAX]);
