/* arch cnn (common/net/network.h), up to the classifier, which all networks share */
#pragma once

#include "worker/model/units.h"

/* Makes units, layers and memory; model_destroy frees what is not the model's own. */
void cnn_build(struct model *m);
int cnn_allocate(struct model *m, struct error *e);
void cnn_lay_out_tensors(struct model *m, size_t weight, size_t bias); /* of the hidden layer */
void cnn_forward(struct model *m);                                     /* from images to head */
void cnn_backward(struct model *m, bool accumulate, const struct announcement *a); /* from d_head */
