#include "tests/reference/reference.h"

void linear_forward_reference(const struct linear *l, const float *w, const float *b,
                              const float *x, size_t n, float *y)
{
    for (size_t i = 0; i < n; i++)
        for (size_t o = 0; o < l->out; o++) {
            double sum = b[o];
            for (size_t k = 0; k < l->in; k++)
                sum += (double)x[i * l->in + k] * w[o * l->in + k];
            y[i * l->out + o] = (float)sum;
        }
}

void linear_backward_reference(const struct linear *l, const float *w, const float *x,
                               const float *dy, size_t n, float *dw, float *db, float *dx)
{
    for (size_t o = 0; o < l->out; o++) {
        double bias = 0;
        for (size_t i = 0; i < n; i++)
            bias += dy[i * l->out + o];
        db[o] = (float)bias;
        for (size_t k = 0; k < l->in; k++) {
            double sum = 0;
            for (size_t i = 0; i < n; i++)
                sum += (double)dy[i * l->out + o] * x[i * l->in + k];
            dw[o * l->in + k] = (float)sum;
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < l->in; k++) {
            double sum = 0;
            for (size_t o = 0; o < l->out; o++)
                sum += (double)dy[i * l->out + o] * w[o * l->in + k];
            dx[i * l->in + k] = (float)sum;
        }
}
