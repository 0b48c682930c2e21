/*
 * Memory of a worker, estimated from the table of layers. In training the engine keeps for each
 * convolution its output before batch norm and the same after batch norm and ReLU; backward needs
 * up to four gradients of the largest size at a time; two batches of images are in memory, the one
 * in work and the one being decoded. For ResNet-50 at 224 that is 102 MB an image and 440 MB besides.
 */
#include "common/arch.h"
#include "common/plan/parts.h"

#define KEPT_COPIES     2
#define LARGEST_BUFFERS 4
#define INPUT_BATCHES   2
#define FIXED_BYTES     (128ll << 20)

struct outputs {
    int64_t sum, largest; /* floats an image */
};

static void add_output(const struct arch_conv *conv, void *context)
{
    struct outputs *o = context;
    int64_t floats = (int64_t)conv->out_size * conv->out_size * conv->out_channels;

    o->sum += floats;
    if (floats > o->largest)
        o->largest = floats;
}

struct plan_memory plan_memory_of(const struct job_spec *spec)
{
    const struct arch *arch = arch_find(spec->model.arch);
    bool trains = spec->mode == JOB_MODE_TRAIN;
    struct outputs outputs = {0};
    int64_t input = 3 * spec->model.image_size * spec->model.image_size;

    arch_each_conv(arch, spec->model.stem, (int)spec->model.image_size, add_output, &outputs);
    int64_t floats = INPUT_BATCHES * input + LARGEST_BUFFERS * outputs.largest +
                     (trains ? KEPT_COPIES * outputs.sum : 0);
    int64_t parameters = arch_parameters(arch, spec->model.stem, (int)spec->model.classes);
    return (struct plan_memory){
        .parameter_bytes = (int64_t)sizeof(float) * parameters,
        .copies = trains ? 3 : 1,
        .bytes_per_image = (int64_t)sizeof(float) * floats,
        .images = trains ? spec->batch_per_worker : spec->eval.batch,
        .fixed_bytes = FIXED_BYTES,
    };
}

int64_t plan_memory_bytes(const struct plan_memory *m)
{
    return m->copies * m->parameter_bytes + m->images * m->bytes_per_image + m->fixed_bytes;
}
