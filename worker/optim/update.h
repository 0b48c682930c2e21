/*
 * The arithmetic of the optimisers: what happens to a range of weights in one step. Which of them
 * there are, their formulas and what they remember: common/job/recipe/optimizers.h.
 *
 * Weight decay is for the weights of convolutions and of the classifier, and for the classifier's
 * bias (as PyTorch does unless told otherwise); for gamma and beta of batch norm only with
 * decay_bn; never for running statistics. LARS treats the classifier's bias as gamma and beta: no
 * decay (decay_bn gives them all the decay) and trust 1.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/job_spec.h"

enum { OPTIM_FLOATS_IN_SUM = 4096 }; /* then a sum of squares goes on in double */

struct optim_norms {
    double w, g; /* sums of squares */
};

/* One step of one tensor. */
struct optim_step {
    double lr, last_lr; /* of this step and of the one before; 0: there was none */
    int64_t number;     /* of the step, from 1 */
    bool decays;
    bool excluded;            /* of LARS's trust: gamma, beta, bias */
    struct optim_norms norms; /* for kernels that want them */
};

/* The step's numbers as the kernels want them. */
struct optim_rule {
    float lr;       /* with LARS's trust and Adam's and Adagrad's divisors in it */
    float decay;    /* g + decay w */
    float keep;     /* AdamW: w is multiplied by it first */
    float momentum; /* with LARS's correction in it */
    float ahead;    /* LARS: momentum without correction, of Nesterov's look ahead */
    bool nesterov, centered;
    float mean_keep, mean_add;     /* of the gradients' mean: beta1, 1 - beta1 */
    float square_keep, square_add; /* of their squares': beta2, alpha or rho, and 1 less it */
    float root;                    /* Adam: 1 / sqrt(1 - beta2^t) */
    float eps;
};

/* state[i]: the i-th of optimizer_states_of, of the same weights as w and g. Returns the sum of
 * g^2. */
typedef double optim_update(const struct optim_rule *r, float *w, float *const state[],
                            const float *g, size_t n);

struct optim_kernel {
    bool wants_norms; /* of a whole tensor before its update */
    /* What is particular to this one; the rule holds the job's keys already. */
    void (*refine)(struct optim_rule *r, const struct job_optimizer_keys *keys,
                   const struct optim_step *step);
    optim_update *update;
};

const struct optim_kernel *optim_kernel_of(enum job_optimizer name);

struct optim_rule optim_rule_of(enum job_optimizer name, const struct job_optimizer_keys *keys,
                                const struct optim_step *step);

/* Norms in double, for any range; trust = eta |w| / (|g| + decay |w|), 1 if either norm is 0. */
struct optim_norms optim_norms_of(const float *w, const float *g, size_t n);
double lars_trust(const struct optim_norms *norms, double eta, double decay);
