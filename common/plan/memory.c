/*
 * Memory of a worker: the engine's arena, whose size the same plan of buffers gives that the engine
 * allocates by (activations.h); the parameters; batches of images; and the program itself. For
 * training data.prefetch_batches of images are in memory beside the one in work, for evaluation
 * two. Measured at 224 with one thread (resident at most): 51.1 MB an image and 337 MB besides.
 */
#include "common/arch.h"
#include "common/activations.h"
#include "common/optimizers.h"
#include "common/plan/parts.h"

#define EVAL_BATCHES 3
#define FIXED_BYTES  (48ll << 20)

struct plan_memory plan_memory_of(const struct job_spec *spec)
{
    const struct arch *arch = arch_find(spec->model.arch);
    bool trains = spec->mode == JOB_MODE_TRAIN;
    const char *states[OPTIMIZER_STATES_MAX];
    struct network network;
    struct activations activations;
    int64_t input = 3 * spec->model.image_size * spec->model.image_size;

    network_make(arch, spec->model.stem, (int)spec->model.image_size, &network);
    activations_plan(&network, !trains, &activations);
    int64_t batches = trains ? spec->data.prefetch_batches + 1 : EVAL_BATCHES;
    int64_t floats = batches * input + (int64_t)activations.floats;
    int64_t parameters = arch_parameters(arch, spec->model.stem, (int)spec->model.classes);
    return (struct plan_memory){
        .parameter_bytes = (int64_t)sizeof(float) * parameters,
        .copies = trains ? 2 + (int)optimizer_states_of(spec, states) : 1,
        .bytes_per_image = (int64_t)sizeof(float) * floats,
        .images = trains ? spec->batch_per_worker : spec->eval.batch,
        .eval_input_bytes =
            spec->data.eval ? (int64_t)sizeof(float) * EVAL_BATCHES * input * spec->eval.batch : 0,
        .fixed_bytes = FIXED_BYTES,
    };
}

int64_t plan_memory_bytes(const struct plan_memory *m)
{
    return m->copies * m->parameter_bytes + m->images * m->bytes_per_image + m->eval_input_bytes +
           m->fixed_bytes;
}
