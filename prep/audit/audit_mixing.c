#include "prep/audit/audit_mixing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns X^2 of the row of a shard: its classes compared with their shares of the whole. */
static double audit_mixing_row_deviation(const int64_t *row, int64_t row_images,
                                         const int64_t *totals, int64_t images, int classes)
{
    double sum = 0;

    for (int c = 0; c < classes; c++) {
        double expected = (double)row_images * (double)totals[c] / (double)images;
        if (totals[c])
            sum += ((double)row[c] - expected) * ((double)row[c] - expected) / expected;
    }
    return sum;
}

static int64_t mixing_count_classes(const struct audit_shard *s, int classes, int64_t *row)
{
    int64_t images = 0;

    memset(row, 0, (size_t)classes * sizeof *row);
    for (int64_t i = 0; i < s->count; i++)
        if (s->records[i].label >= 0 && s->records[i].label < classes) {
            row[s->records[i].label]++;
            images++;
        }
    return images;
}

static double mixing_score(double deviation, double freedom, int64_t images)
{
    return images ? 1 / (1 + fmax(0, deviation - freedom) / (double)images) : 1;
}

int mixing_measure(const struct audit_shard *shards, int count, int classes, struct mixing *out,
                   struct error *e)
{
    int64_t *row = calloc(2 * (size_t)classes + 1, sizeof *row),
            *totals = row ? row + classes : NULL;
    int64_t images = 0;
    int present = 0, filled = 0;
    double deviation = 0;

    *out = (struct mixing){.score = 1, .worst_score = 1};
    if (!row)
        return error_set(e, ERR_NO_MEMORY, "no memory to count classes");
    for (int s = 0; s < count; s++) {
        int64_t in_row = mixing_count_classes(&shards[s], classes, row);
        images += in_row;
        filled += in_row > 0;
        for (int c = 0; c < classes; c++)
            totals[c] += row[c];
    }
    for (int c = 0; c < classes; c++)
        present += totals[c] > 0;
    for (int s = 0; s < count; s++) {
        int64_t in_row = mixing_count_classes(&shards[s], classes, row);
        double of_row = audit_mixing_row_deviation(row, in_row, totals, images, classes);
        double row_score = mixing_score(of_row, present - 1, in_row);
        deviation += of_row;
        if (row_score < out->worst_score) {
            out->worst_score = row_score;
            out->worst = s;
        }
    }
    double freedom = (double)(filled - 1) * (present - 1);
    if (freedom > 0) {
        out->score = mixing_score(deviation, freedom, images);
        out->z = (deviation - freedom) / sqrt(2 * freedom);
    }
    free(row);
    return 0;
}
