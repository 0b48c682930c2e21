#include "common/job/job_batch.h"

#include <stdio.h>

#include "common/job/job_options.h"

int64_t job_batch_even(int64_t share, int64_t most)
{
    int64_t batch = share < most ? share : most;

    while (share % batch != 0)
        batch--;
    return batch;
}

static void job_batch_refuse_uneven(const struct job_spec *spec, int64_t unit, const char *of,
                                    struct problems *problems)
{
    long long below = spec->global_batch / unit * unit, above = below + unit;

    if (below)
        problems_add(problems, "/global_batch", NULL,
                     "%lld images cannot be shared out evenly over %s: the nearest that can are "
                     "%lld and %lld",
                     (long long)spec->global_batch, of, below, above);
    else
        problems_add(problems, "/global_batch", NULL,
                     "%lld images are too few for %s: it takes at least %lld",
                     (long long)spec->global_batch, of, above);
}

static void job_batch_settle_auto(struct job_spec *spec, int64_t share, struct problems *problems)
{
    int64_t most = spec->batch_per_worker, batch = job_batch_even(share, most);

    if (share > most && 2 * batch < most) {
        int64_t world = job_spec_world_size(spec), count = (share + most - 1) / most;
        long long below = share / count * count * world,
                  above = (share / count + 1) * count * world;
        problems_add(problems, "/global_batch", NULL,
                     "a worker's %lld images have no equal batches of %lld to %lld images: with "
                     "accumulate_steps %lld the nearest that have are %lld and %lld",
                     (long long)share, (long long)(most + 1) / 2, (long long)most, (long long)count,
                     below, above);
        return;
    }
    spec->batch_per_worker = batch;
    spec->accumulate_steps = share / batch;
}

static void job_batch_settle_fixed(struct job_spec *spec, bool stated, int64_t share,
                                   struct problems *problems)
{
    int64_t batch = share / spec->accumulate_steps;
    int64_t most = (int64_t)job_option_find("/batch_per_worker")->max;

    if (stated && spec->batch_per_worker != batch)
        problems_add(problems, "/batch_per_worker", NULL,
                     "%lld images a worker do not make the global_batch of %lld, that takes %lld: "
                     "leave one of the two out",
                     (long long)spec->batch_per_worker, (long long)spec->global_batch,
                     (long long)batch);
    else if (batch > most)
        problems_add(problems, "/global_batch", NULL,
                     "makes %lld images a worker, more than the %lld that it may handle at a time: "
                     "use more workers, or accumulate_steps \"auto\"",
                     (long long)batch, (long long)most);
    else
        spec->batch_per_worker = batch;
}

static void batch_settle(struct job_spec *spec, bool stated, struct problems *problems)
{
    int64_t world = job_spec_world_size(spec);
    bool automatic = spec->accumulate_steps == 0;
    int64_t unit = world * (automatic ? 1 : spec->accumulate_steps);
    char of[96];

    if (automatic || spec->accumulate_steps == 1)
        snprintf(of, sizeof of, "%lld workers", (long long)world);
    else
        snprintf(of, sizeof of, "%lld workers with %lld batches each", (long long)world,
                 (long long)spec->accumulate_steps);
    if (spec->global_batch % unit != 0)
        job_batch_refuse_uneven(spec, unit, of, problems);
    else if (automatic)
        job_batch_settle_auto(spec, spec->global_batch / world, problems);
    else
        job_batch_settle_fixed(spec, stated, spec->global_batch / world, problems);
}

void job_batch_settle(struct job_spec *spec, bool stated, struct problems *problems)
{
    static const char *const keys[] = {"/global_batch", "/batch_per_worker", "/accumulate_steps",
                                       "/cluster/nodes", "/cluster/workers_per_node"};
    bool known = true;

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        known = known && !problems_about(problems, keys[i]);
    if (known && spec->has_global_batch)
        batch_settle(spec, stated, problems);
    else if (known && spec->accumulate_steps == 0)
        problems_add(problems, "/accumulate_steps", NULL,
                     "\"auto\" needs global_batch, the images that it shares out");
    if (spec->accumulate_steps == 0)
        spec->accumulate_steps = 1;
}
