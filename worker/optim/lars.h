/*
 * LARS, layer-wise adaptive rate scaling (You et al., arXiv:1708.03888), in the form of TensorFlow
 * and the MLPerf reference: the learning rate is inside the momentum. Of each tensor, with norms in
 * double:
 *
 *   trust = eta ||w|| / (||g|| + decay ||w||); 1 where either norm is 0
 *   m = momentum m + lr trust (g + decay w); w -= m; with Nesterov w -= momentum m + lr trust (g +
 * decay w)
 *
 * Gamma, beta and the classifier's bias are left out of both: trust is 1 and decay 0 (decay_bn
 * gives them the decay). torch's form, m = momentum m + (g + decay w); w -= lr trust m, goes
 * another way whenever the learning rate moves.
 */
#ifndef TRAIND_WORKER_OPTIM_LARS_H
#define TRAIND_WORKER_OPTIM_LARS_H

#include <stdbool.h>

#include "common/error.h"
#include "worker/model/model.h"

struct lars_config {
    double momentum;
    bool nesterov;
    double weight_decay;
    bool decay_bn;
    double eta;
    bool
        momentum_correction; /* m = momentum lr / lr_before m + ...: Goyal et al., arXiv:1706.02677,
                                section 3, the remark on eq. 10. The rate then acts on all of m at
                                once, as in the form of torch and sgd.h, eq. 9. */
};

struct lars;

/* The model must outlive the optimiser. */
int lars_create(struct model *m, const struct lars_config *config, struct lars **out,
                struct error *e);
void lars_destroy(struct lars *l); /* NULL is fine */

/* Updates the model's parameters from its gradients. Returns the sum of the squared gradients
 * (without decay). The caller calls model_params_changed. The bits do not depend on the number of
 * threads. */
double lars_step(struct lars *l, double lr);

/* The rate of the step before the next one, for the correction: of a run that is resumed. */
void lars_set_last_rate(struct lars *l, double lr);

/* m above, in the layout of model_params. */
float *lars_momentum(struct lars *l);

/* The two passes over a range. rate is lr trust. The _reference twin is all in double. */
struct lars_norms {
    double w, g; /* sums of squares */
};
struct lars_rule {
    float rate, momentum, decay;
    bool nesterov;
    float ahead; /* momentum without correction: of Nesterov's look ahead */
};
struct lars_norms lars_norms_of(const float *w, const float *g, size_t n);
double lars_trust(const struct lars_norms *norms, double eta, double decay);
void lars_update(const struct lars_rule *r, float *w, float *m, const float *g, size_t n);
void lars_update_reference(const struct lars_config *c, bool excluded, double lr, float *w,
                           float *m, const float *g, size_t n);

#endif
