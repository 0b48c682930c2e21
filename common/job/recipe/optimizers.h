/* THE table of optimisers, for planner, documents and engine; worker/optim/ has their arithmetic.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/job/job_spec.h"

#define OPTIMIZER_STATES_MAX   3
#define OPTIMIZER_DEFAULTS_MAX 6

struct optimizer_kind {
    const char *name;    /* optimizer.name */
    const char *formula; /* of one update, for explain */
    const char *source;
    bool adaptive;      /* divides by the gradients' size: a rate of its own for each weight */
    bool spares_biases; /* the classifier's bias goes with gamma and beta (optimizer.decay_bn) */
    const char *keys;   /* of the group optimizer, those that not all use: " momentum nesterov " */
    const char *states[OPTIMIZER_STATES_MAX + 1]; /* what it remembers of each weight */
    struct optimizer_default {
        const char *pointer, *value; /* a key's default with this optimiser, as JSON text */
    } defaults[OPTIMIZER_DEFAULTS_MAX];
};

/* By enum job_optimizer; NULL at the end. */
const struct optimizer_kind *optimizer_kind_at(size_t i);

/* Whether it uses the key ("/optimizer/beta1"); true for keys of other groups. */
bool optimizer_uses(const struct optimizer_kind *kind, const char *pointer);

/* The key's default with it; NULL: the table of keys has it. */
const char *optimizer_default(const struct optimizer_kind *kind, const char *pointer);

/* The optimiser's state tensors, with an element per weight. Returns their number. */
size_t optimizer_states_of(const struct job_spec *spec, const char *names[OPTIMIZER_STATES_MAX]);
