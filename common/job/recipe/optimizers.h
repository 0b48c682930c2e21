/*
 * The optimisers that a job may name: what the planner, the job document's defaults and checks, and
 * the engine need to know of each. THE table; worker/optim/ has their arithmetic, by the same enum.
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

/* By enum job_optimizer; NULL behind the last. */
const struct optimizer_kind *optimizer_kind_at(size_t i);

/* Has this optimiser a use for the key ("/optimizer/beta1")? True for keys of other groups. */
bool optimizer_uses(const struct optimizer_kind *kind, const char *pointer);

/* The key's default with it, or NULL: the one of the table of keys. */
const char *optimizer_default(const struct optimizer_kind *kind, const char *pointer);

/* The names of what the job's optimiser remembers, one number for each weight; returns how many. */
size_t optimizer_states_of(const struct job_spec *spec, const char *names[OPTIMIZER_STATES_MAX]);
