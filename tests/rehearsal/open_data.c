/*
 * open_data DIR train|validation [NODE NODES]: opens a data set as a rank of a run does, keeps its
 * index, and lists the images of one epoch in their order. Prints one JSON object: how long each
 * took, whether the index was there, and the most memory that it took.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/clock.h"
#include "worker/data/sampler.h"

#define BATCH 256

/* Seconds; every image comes at most once, which the sum shows. */
static double walk_epoch(struct dataset *d, int64_t *seen)
{
    struct loader_config c = {
        .dataset = d,
        .role = DATASET_TRAIN,
        .shuffle = true,
        .images = dataset_images(d),
        .batch = BATCH,
        .world = 1,
        .seed = 1,
    };
    int64_t images[BATCH];
    double begun = clock_monotonic();

    c.steps = c.steps_per_epoch = c.images / BATCH;
    *seen = 0;
    for (int64_t k = 0; k < c.steps; k++)
        *seen += sampler_batch(&c, k, images).n;
    return clock_monotonic() - begun;
}

int main(int argc, char **argv)
{
    struct dataset_part part = {0, 1};
    struct dataset *d;
    struct rusage used;
    struct error e;
    int64_t seen;

    if (argc != 3 && argc != 5) {
        fprintf(stderr, "usage: open_data DIR train|validation [NODE NODES]\n");
        return 2;
    }
    if (argc == 5)
        part = (struct dataset_part){atoi(argv[3]), atoi(argv[4])};
    double begun = clock_monotonic();
    enum dataset_role role = strcmp(argv[2], "train") == 0 ? DATASET_TRAIN : DATASET_EVAL;
    if (dataset_open_part(argv[1], role, part, &d, &e)) {
        fprintf(stderr, "open_data: %s\n", e.text);
        return 1;
    }
    double opened = clock_monotonic();
    bool had_index = !dataset_keep_index(d);
    double kept = clock_monotonic();
    double walked = walk_epoch(d, &seen);
    getrusage(RUSAGE_SELF, &used);
    printf("{\"images\": %lld, \"had_index\": %s, \"open_seconds\": %.4f, \"keep_seconds\": %.4f, "
           "\"epoch_images\": %lld, \"epoch_seconds\": %.4f, \"peak_bytes\": %lld}\n",
           (long long)dataset_images(d), had_index ? "true" : "false", opened - begun,
           kept - opened, (long long)seen, walked, 1024LL * used.ru_maxrss);
    dataset_close(d);
    return 0;
}
