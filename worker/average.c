#include "worker/average.h"

void average_over_ranks(struct run *r, float *numbers, size_t count)
{
    double sums[1024];

    if (r->world == 1)
        return;
    for (size_t from = 0; from < count; from += sizeof sums / sizeof sums[0]) {
        size_t n = count - from < sizeof sums / sizeof sums[0] ? count - from
                                                               : sizeof sums / sizeof sums[0];
        for (size_t i = 0; i < n; i++)
            sums[i] = numbers[from + i];
        traincomm_reduce(r->comm, TRAINCOMM_SUM, sums, n);
        for (size_t i = 0; i < n; i++)
            numbers[from + i] = (float)(sums[i] / r->world);
    }
}
