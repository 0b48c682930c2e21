/*
 * Memory of a worker, estimated from the table of layers. In training the engine keeps for each
 * convolution its output before batch norm and, but for the down-sampling ones, the same after
 * batch norm and ReLU; the output of the stem's pooling with one byte a value that says where the
 * maximum was; and four buffers of the largest size, which are all that evaluation needs. Three
 * batches of images are in memory for training, and as many for evaluation: one in work, two being
 * decoded. Measured at 224 with one thread (resident at most): 98.1 MB an image and 326 MB besides.
 */
#include <string.h>

#include "common/arch.h"
#include "common/plan/parts.h"

#define LARGEST_BUFFERS 4
#define INPUT_BATCHES   3
#define FIXED_BYTES     (64ll << 20)

struct outputs {
    int64_t kept, largest; /* floats an image */
};

static void add_output(const struct arch_conv *conv, void *context)
{
    struct outputs *o = context;
    int64_t floats = (int64_t)conv->out_size * conv->out_size * conv->out_channels;

    o->kept += strstr(conv->name, "downsample") ? floats : 2 * floats;
    if (floats > o->largest)
        o->largest = floats;
}

/* Bytes an image: four of a float and one that says where the maximum was. */
static int64_t pooled_bytes(const struct job_spec *spec)
{
    int64_t size = spec->model.image_size / 4; /* after a convolution and a pooling of stride 2 */

    return spec->model.stem == JOB_STEM_IMAGENET ? 5 * 64 * size * size : 0;
}

struct plan_memory plan_memory_of(const struct job_spec *spec)
{
    const struct arch *arch = arch_find(spec->model.arch);
    bool trains = spec->mode == JOB_MODE_TRAIN;
    struct outputs outputs = {0};
    int64_t input = 3 * spec->model.image_size * spec->model.image_size;

    arch_each_conv(arch, spec->model.stem, (int)spec->model.image_size, add_output, &outputs);
    int64_t floats =
        INPUT_BATCHES * input + LARGEST_BUFFERS * outputs.largest + (trains ? outputs.kept : 0);
    int64_t parameters = arch_parameters(arch, spec->model.stem, (int)spec->model.classes);
    return (struct plan_memory){
        .parameter_bytes = (int64_t)sizeof(float) * parameters,
        .copies = trains ? 3 : 1,
        .bytes_per_image = (int64_t)sizeof(float) * floats + (trains ? pooled_bytes(spec) : 0),
        .images = trains ? spec->batch_per_worker : spec->eval.batch,
        .eval_input_bytes =
            spec->data.eval ? (int64_t)sizeof(float) * INPUT_BATCHES * input * spec->eval.batch : 0,
        .fixed_bytes = FIXED_BYTES,
    };
}

int64_t plan_memory_bytes(const struct plan_memory *m)
{
    return m->copies * m->parameter_bytes + m->images * m->bytes_per_image + m->eval_input_bytes +
           m->fixed_bytes;
}
