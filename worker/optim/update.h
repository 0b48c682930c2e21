/*
 * Arithmetic of the optimisers (common/job/recipe/optimizers.h) on a range of weights.
 *
 * Weight decay applies to the weights of convolutions and of the classifier, and to the
 * classifier's bias (as PyTorch); to gamma and beta of batch norm only with decay_bn. LARS treats
 * the classifier's bias like gamma and beta: no decay (with decay_bn they all decay) and trust 1.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/job_spec.h"

enum { OPTIM_FLOATS_IN_SUM = 4096 }; /* sums of squares continue in double after these */

struct optim_norms {
    double w, g; /* sums of squares */
};

/* One step of one tensor */
struct optim_step {
    double lr, last_lr; /* of this and the previous step; 0: none */
    double peak_lr;     /* of the schedule */
    int64_t number;     /* of the step, from 1 */
    bool decays;
    bool excluded;            /* from LARS's trust: gamma, beta, bias */
    struct optim_norms norms; /* if the kernel wants them */
};

/* The step's numbers for the kernels */
struct optim_rule {
    float lr;       /* including LARS's trust and Adam's and Adagrad's divisors */
    float decay;    /* g + decay w */
    float keep;     /* AdamW, SGDW: factor of w, applied first */
    float momentum; /* including LARS's correction */
    float ahead;    /* LARS: momentum without correction, for Nesterov */
    bool nesterov, centered;
    float mean_keep, mean_add;     /* of the gradients' mean: beta1, 1 - beta1 */
    float square_keep, square_add; /* of their squares': beta2, alpha or rho, and 1 minus it */
    float root;                    /* Adam: 1 / sqrt(1 - beta2^t) */
    float eps;
};

/* state[i]: i-th of optimizer_states_of, for the same weights as w and g. Returns the sum of
 * g^2. */
typedef double optim_update(const struct optim_rule *r, float *w, float *const state[],
                            const float *g, size_t n);

struct optim_kernel {
    bool wants_norms; /* of a whole tensor, before its update */
    /* Sets what is specific to this one; the rule already has the job's keys. */
    void (*refine)(struct optim_rule *r, const struct job_optimizer_keys *keys,
                   const struct optim_step *step);
    optim_update *update;
};

const struct optim_kernel *optim_kernel_of(enum job_optimizer name);

struct optim_rule optim_rule_of(enum job_optimizer name, const struct job_optimizer_keys *keys,
                                const struct optim_step *step);

/* Norms in double, for any range. trust = eta |w| / (|g| + decay |w|), 1 if either norm is 0. */
struct optim_norms optim_norms_of(const float *w, const float *g, size_t n);
double lars_trust(const struct optim_norms *norms, double eta, double decay);
