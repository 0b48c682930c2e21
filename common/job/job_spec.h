/* A job document as a C struct, filled by job_document.h. Keys, defaults, ranges and help are in
 * common/job/job_options.c; units and meanings are those of train-job(5). */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/job_sizes.h"
#include "common/notify/rule.h"

enum job_mode { JOB_MODE_TRAIN, JOB_MODE_EVAL };
enum job_stem { JOB_STEM_IMAGENET, JOB_STEM_SMALL };
enum job_gemm { JOB_GEMM_AUTO, JOB_GEMM_OPENBLAS, JOB_GEMM_OWN };
enum job_preprocess {
    JOB_PREPROCESS_TPU,
    JOB_PREPROCESS_MLPERF,
    JOB_PREPROCESS_TORCHVISION,
    JOB_PREPROCESS_WHOLE
};
enum job_locality { JOB_LOCALITY_GLOBAL, JOB_LOCALITY_NODE };
enum job_launcher { JOB_LAUNCHER_LOCAL, JOB_LAUNCHER_SLURM };
enum job_bind { JOB_BIND_AUTO, JOB_BIND_CORE, JOB_BIND_SOCKET, JOB_BIND_NUMA, JOB_BIND_NONE };
enum job_precision { JOB_PRECISION_FP32, JOB_PRECISION_BF16 };
enum job_core { JOB_CORE_NONE = -2, JOB_CORE_AUTO = -1 }; /* as the words of comm.core are stored */
enum job_scaling { JOB_SCALING_LINEAR, JOB_SCALING_SQRT, JOB_SCALING_NONE };
enum job_decay {
    JOB_DECAY_POLY,
    JOB_DECAY_COSINE,
    JOB_DECAY_STEP,
    JOB_DECAY_EXPONENTIAL,
    JOB_DECAY_NONE
};
enum job_optimizer {
    JOB_OPTIMIZER_SGD,
    JOB_OPTIMIZER_LARS,
    JOB_OPTIMIZER_ADAM,
    JOB_OPTIMIZER_ADAMW,
    JOB_OPTIMIZER_RMSPROP,
    JOB_OPTIMIZER_ADAGRAD,
    JOB_OPTIMIZER_ADADELTA
};
enum job_rounding { JOB_ROUNDING_FLOOR, JOB_ROUNDING_EXACT };
enum job_batch_schedule { JOB_BATCH_CONSTANT, JOB_BATCH_FILL };
enum job_rescale { JOB_RESCALE_RESCALE, JOB_RESCALE_KEEP_BATCH };

#define JOB_MILESTONES_MAX 32
#define JOB_MPI_ARGS_MAX   64
#define JOB_HOSTS_MAX      4096
#define JOB_ENV_MAX        64
#define JOB_TAGS_MAX       17   /* 16, and what the star of older versions became */
#define JOB_NOTE_MAX       4096 /* characters */

/* The spec owns its strings; NULL is JSON null. A list of strings is NULL or NULL-terminated.
 * Optional numbers have a has_ flag. */
struct job_spec {
    char *name;
    char *
        *tags; /* these two, and the name: as the job begins; the store has them as they are now */
    size_t tag_count;
    char *note;
    char *preset;
    bool has_reproduces;
    int64_t reproduces; /* a job's id */
    enum job_mode mode;
    struct {
        char *arch; /* a name of common/net/arch.c */
        int64_t classes;
        int64_t image_size;     /* pixels, square; of several the last one, which is the largest */
        struct job_sizes sizes; /* by epoch; count 0 or 1: image_size always */
        enum job_stem stem;
        double width;   /* of channels: common/net/arch.h */
        double dropout; /* the rate in front of the classifier; 0: off */
        char *init;     /* a .safetensors file */
        double bn_decay;
        bool zero_init_residual;
        bool winograd;
        char *winograd_tiles; /* as JOB_TEXT_TILES; NULL: measured */
        enum job_gemm gemm;
    } model;
    struct {
        char *train; /* a folder, or "synthetic" */
        char *eval;  /* NULL: no evaluation */
        bool has_train_images, has_eval_images;
        int64_t train_images, eval_images;
        enum job_preprocess preprocess;
        bool augment, random_crop, random_flip; /* all of it; its parts */
        bool shuffle;
        enum job_locality locality;
        double mixup;             /* alpha of Beta(alpha, alpha); 0: off */
        int64_t prefetch_threads; /* 0: as many as keep up with the engine */
        int64_t prefetch_batches; /* made ahead */
    } data;
    struct {
        enum job_launcher launcher;
        int64_t nodes;
        int64_t workers_per_node;   /* 0: the plan chooses (common/plan/workers.h) */
        int64_t threads_per_worker; /* 0: cores (smt: hardware threads) / workers */
        enum job_bind bind;
        bool smt; /* a slot is a hardware thread, not a core */
        char **hosts;
        size_t host_count;
        char *interface;
        bool has_ssh_port;
        int64_t ssh_port;
        char *partition;
        char *account;
        char *constraint;
        char *time_limit;
        char *mpi_prefix;
        char **mpi_args;
        size_t mpi_arg_count;
        char **env; /* "NAME=value" */
        size_t env_count;
    } cluster;
    bool has_global_batch;
    int64_t global_batch;     /* as the document says it; job_batch_settle derives the next two */
    int64_t batch_per_worker; /* images of a forward pass */
    bool states_batch;        /* not a key: the document itself gives batch_per_worker */
    int64_t accumulate_steps; /* 0: "auto", until it is settled */
    enum job_batch_schedule batch_schedule;
    double epochs;
    enum job_rounding steps_rounding;
    bool has_steps;
    int64_t steps;
    int64_t seed;
    enum job_precision precision;
    double loss_scale;
    struct {
        double base;
        int64_t base_batch;
        enum job_scaling scaling;
        double factor;
        bool has_start;
        double start;
        double warmup_epochs;
        enum job_decay decay;
        double power;
        double end;
        double milestones[JOB_MILESTONES_MAX]; /* epochs */
        size_t milestone_count;
        double gamma;
        double decay_epochs;
        bool staircase;
    } lr;
    struct job_optimizer_keys {
        enum job_optimizer name;
        double momentum;
        bool nesterov;
        double weight_decay;
        bool decay_bn;
        double lars_eta;
        bool momentum_correction;
        double beta1, beta2, eps; /* adam, adamw; eps of all adaptive ones */
        double alpha;             /* rmsprop */
        bool centered;
        double lr_decay; /* adagrad */
        double rho;      /* adadelta */
        double label_smoothing;
    } optimizer;
    struct {
        double every_epochs; /* 0: only at the end */
        int64_t batch;
        bool has_target_top1;
        double target_top1; /* fraction, 0 to 1 */
        bool stop_at_target;
        bool predictions;
        bool has_image_size;
        int64_t image_size; /* job_spec_eval_size */
        bool flip;
    } eval;
    struct {
        double decay; /* 0: no averaged weights */
        double from_epoch;
        bool warmup;
    } ema;
    struct {
        double every_epochs;
        int64_t every_steps;
        int64_t keep; /* 0: "auto" */
        bool disable;
    } checkpoint;
    struct {
        int64_t fusion_bytes;
        enum job_precision dtype; /* of the gradients that are summed */
        bool overlap;
        int64_t core; /* a CPU, or enum job_core */
    } comm;
    struct {
        bool has_steps;
        int64_t first_step, last_step;
    } profile;
    struct {
        double every_seconds; /* 0: not by time */
        int64_t every_steps;  /* 0: not by steps */
    } log;
    struct {
        int64_t every_steps;
    } tensorboard;
    struct {
        int64_t max;
        enum job_rescale on_fewer_nodes;
    } restart;
    int64_t priority;
    struct notice_rules notify; /* of the daemon alone; planner and worker ignore it */
    json_t *from_data; /* not a key: of what was left to the data, explanations of a plan */
    int64_t
        recipe_images; /* not a key: the training images the preset's numbers are meant for, or 0 */
};

/* Random images instead of the folder data.train or data.eval. False for NULL. */
bool job_spec_is_synthetic(const char *path);

/* Whether the loader rounds images to bf16: unless they are mixed in fp32. */
static inline bool job_spec_has_bf16_images(const struct job_spec *spec)
{
    return spec->precision == JOB_PRECISION_BF16 && spec->data.mixup == 0;
}

int64_t job_spec_eval_size(const struct job_spec *spec);

static inline bool job_spec_leaves_workers(const struct job_spec *spec)
{
    return spec->cluster.workers_per_node == 0;
}

int64_t job_spec_world_size(const struct job_spec *spec);

bool job_spec_names_hosts(const struct job_spec *spec);

/* cluster.env, the ranks' environment. These rules hold for every user; an administrator's list
 * restricts users further (daemon/http/access/job_policy.h). */

#define JOB_ENV_NAME_BYTES 129 /* with its NUL */

/* Copies the name of "NAME=value" and returns the value within it. */
const char *job_env_split(const char *variable, char name[JOB_ENV_NAME_BYTES]);

const char *job_env_value(const struct job_spec *spec, const char *name);

/* Whether it loads code, starts programs, names files or decides where programs are found
 * (LD_PRELOAD, PATH, UCX_MODULE_DIR), or belongs to a launcher: no document may set it. */
bool job_env_is_refused(const char *name);

/* What sets the variable instead: a key, or words for a message; NULL: nothing. */
const char *job_env_setter(const char *name);
