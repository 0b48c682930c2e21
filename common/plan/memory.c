#include "common/plan/memory.h"

#include "common/job/recipe/optimizers.h"
#include "common/net/activations.h"
#include "common/net/arch.h"
#include "common/net/bf16_grid.h"
#include "common/net/network.h"

/* Memory of a worker: the engine's arena, whose size is computed by the function that the engine
 * allocates it with (activations.h); the parameters; batches of images; and the program itself. In
 * training data.prefetch_batches of images are in memory besides the current one, in evaluation
 * two. Measured at 224 pixels with one thread (maximum resident memory): 51.1 MB per image and 337
 * MB in addition. What the sum does not include is fitted to the resident memory of workers: with
 * FIXED_BYTES the result is within 4 % for residual networks of 18 to 152 layers at 64 to 224
 * pixels, 1 to 48 threads and 1 to 4 workers. In bf16 the memory of a thread follows from the
 * network (bf16_grid.h). */
#define EVAL_BATCHES 3
/* FIXED_BYTES and CNN_FIXED_BYTES are fitted for 25 to 400 images and 1 to 48 threads */
#define FIXED_BYTES       (32ll << 20)
#define CNN_FIXED_BYTES   (20ll << 20)
#define THREAD_BYTES      (15ll << 17)
#define CNN_THREAD_BYTES  (13ll << 17)
#define BF16_THREAD_BYTES (1ll << 19) /* besides its scratch memory */

static size_t memory_activation_bytes(const struct job_spec *spec, const struct arch_shape *shape)
{
    bool inference = spec->mode != JOB_MODE_TRAIN;
    size_t number_bytes = spec->precision == JOB_PRECISION_BF16 ? 2 : sizeof(float);
    struct activations activations;
    struct network network;
    struct cnn_layout cnn;

    if (shape->arch->family == ARCH_CNN) {
        cnn_lay_out(shape, inference, &cnn);
        return cnn.floats * sizeof(float);
    }
    network_make(shape, &network);
    activations_plan(&network, inference, number_bytes, &activations);
    return activations.numbers * number_bytes;
}

static struct bf16_thread_bytes memory_bf16_bytes(const struct job_spec *spec,
                                                  const struct arch_shape *shape)
{
    bool trains = spec->mode == JOB_MODE_TRAIN;
    int64_t images = trains ? spec->batch_per_worker : spec->eval.batch;

    return bf16_thread_bytes_of(shape, trains, (size_t)images,
                                (int)spec->cluster.threads_per_worker);
}

struct thread_memory {
    int64_t each; /* per thread after the first */
    int64_t all;  /* of all threads together */
};

static struct thread_memory memory_thread_memory_of(const struct job_spec *spec,
                                                    const struct arch_shape *shape)
{
    if (shape->arch->family == ARCH_CNN)
        return (struct thread_memory){CNN_THREAD_BYTES, 0};
    if (spec->precision != JOB_PRECISION_BF16)
        return (struct thread_memory){THREAD_BYTES, 0};
    struct bf16_thread_bytes bytes = memory_bf16_bytes(spec, shape);
    return (struct thread_memory){BF16_THREAD_BYTES + (int64_t)(bytes.scratch + bytes.dw),
                                  (int64_t)bytes.shared};
}

/* The larger one of training and of an evaluation at another size. */
static size_t memory_most_activation_bytes(const struct job_spec *spec,
                                           const struct arch_shape *shape)
{
    struct job_spec evaluation = *spec; /* borrows its strings */
    size_t training = memory_activation_bytes(spec, shape);

    if (spec->mode == JOB_MODE_EVAL || job_spec_eval_size(spec) <= spec->model.image_size)
        return training;
    evaluation.mode = JOB_MODE_EVAL;
    struct arch_shape larger = arch_shape_of(&evaluation);
    size_t alone = memory_activation_bytes(&evaluation, &larger);
    return alone > training ? alone : training;
}

static int64_t memory_input_bytes_of(const struct job_spec *spec)
{
    return job_spec_has_bf16_images(spec) ? 2 : sizeof(float);
}

int64_t plan_image_bytes(const struct job_spec *spec, int64_t size)
{
    struct arch_shape shape = arch_shape_of(spec);
    int64_t input = arch_image_channels(shape.arch) * size * size;

    shape.image_size = (int)size;
    return memory_input_bytes_of(spec) * (spec->data.prefetch_batches + 1) * input +
           (int64_t)memory_activation_bytes(spec, &shape);
}

struct plan_memory plan_memory_of(const struct job_spec *spec)
{
    bool trains = spec->mode == JOB_MODE_TRAIN;
    const char *states[OPTIMIZER_STATES_MAX];
    struct arch_shape shape = arch_shape_of(spec);
    int64_t channels = arch_image_channels(shape.arch), eval_size = job_spec_eval_size(spec);
    int64_t eval_input = channels * eval_size * eval_size;
    int64_t input =
        trains ? channels * spec->model.image_size * spec->model.image_size : eval_input;

    int64_t input_bytes = memory_input_bytes_of(spec);
    int64_t batches = trains ? spec->data.prefetch_batches + 1 : EVAL_BATCHES;
    int64_t parameters = arch_parameters(&shape);
    struct thread_memory threads = memory_thread_memory_of(spec, &shape);
    return (struct plan_memory){
        .parameter_bytes = (int64_t)sizeof(float) * parameters,
        .copies = 1 + (trains && job_spec_averages(spec)),
        .trained_bytes = trains ? (int64_t)sizeof(float) * arch_trained_parameters(&shape) : 0,
        .trained_copies = trains ? 1 + (int)optimizer_states_of(spec, states) : 0,
        .bytes_per_image =
            input_bytes * batches * input + (int64_t)memory_most_activation_bytes(spec, &shape),
        .images = trains ? spec->batch_per_worker : spec->eval.batch,
        .eval_input_bytes = spec->data.eval ? input_bytes * (EVAL_BATCHES + spec->eval.flip) *
                                                  eval_input * spec->eval.batch
                                            : 0,
        .fixed_bytes =
            (shape.arch->family == ARCH_CNN ? CNN_FIXED_BYTES : FIXED_BYTES) + threads.all,
        .more_threads =
            spec->cluster.threads_per_worker > 1 ? spec->cluster.threads_per_worker - 1 : 0,
        .thread_bytes = threads.each,
    };
}

int64_t plan_memory_bytes(const struct plan_memory *m)
{
    return m->copies * m->parameter_bytes + m->trained_copies * m->trained_bytes +
           m->images * m->bytes_per_image + m->eval_input_bytes + m->fixed_bytes +
           m->more_threads * m->thread_bytes;
}
