/*
 * Stochastic gradient descent with momentum as torch and Goyal et al. (arXiv:1706.02677, section 3,
 * eq. 9) have it: v = momentum v + (g + decay w); w -= lr v; with Nesterov w -= lr (g + decay w +
 * momentum v). Weight decay is for the weights of convolutions and of the classifier, and for the
 * classifier's bias (as torch does unless told otherwise); for gamma and beta of batch norm only
 * with decay_bn; never for running statistics. One pass over the model's flat buffers does all of
 * it.
 */
#ifndef TRAIND_WORKER_OPTIM_SGD_H
#define TRAIND_WORKER_OPTIM_SGD_H

#include <stdbool.h>

#include "common/error.h"
#include "worker/model/model.h"

struct sgd_config {
    double momentum;
    bool nesterov;
    double weight_decay;
    bool decay_bn;
};

struct sgd;

/* The model must outlive the optimiser. */
int sgd_create(struct model *m, const struct sgd_config *config, struct sgd **out, struct error *e);
void sgd_destroy(struct sgd *s); /* NULL is fine */

/* Updates the model's parameters from its gradients. Returns the sum of the squared gradients
 * (without decay). The caller calls model_params_changed. */
double sgd_step(struct sgd *s, double lr);

/* The velocities, in the layout of model_params. */
float *sgd_velocity(struct sgd *s);

/* What one range of the buffers goes through; returns the sum of g^2. The _reference twin is in
 * double. */
struct sgd_rule {
    float lr, momentum, decay;
    bool nesterov;
};
double sgd_update(const struct sgd_rule *r, float *w, float *v, const float *g, size_t n);
double sgd_update_reference(const struct sgd_rule *r, float *w, float *v, const float *g, size_t n);

#endif
