/* A job document as a C struct, filled by job_document.h. common/job/job_options.c contains keys,
 * defaults, ranges and help; train-job(5) describes units and meanings. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/job_sizes.h"
#include "common/notify/rule.h"

enum job_mode { JOB_MODE_TRAIN, JOB_MODE_EVAL };
enum job_loss { JOB_LOSS_CROSS_ENTROPY, JOB_LOSS_BCE };
enum job_bn_init { JOB_BN_ONES, JOB_BN_UNIFORM };
enum job_stem { JOB_STEM_IMAGENET, JOB_STEM_SMALL };
enum job_gemm { JOB_GEMM_AUTO, JOB_GEMM_OPENBLAS, JOB_GEMM_OWN };
enum job_auto_augment {
    JOB_AUTO_AUGMENT_NONE,
    JOB_AUTO_AUGMENT_TRIVIAL,
    JOB_AUTO_AUGMENT_RANDAUGMENT
};
enum job_preprocess {
    JOB_PREPROCESS_TPU,
    JOB_PREPROCESS_MLPERF,
    JOB_PREPROCESS_TORCHVISION,
    JOB_PREPROCESS_WHOLE
};
enum job_flip { JOB_FLIP_RANDOM, JOB_FLIP_ALTERNATING };
enum job_locality { JOB_LOCALITY_GLOBAL, JOB_LOCALITY_NODE };
enum job_launcher { JOB_LAUNCHER_LOCAL, JOB_LAUNCHER_SLURM };
enum job_bind { JOB_BIND_AUTO, JOB_BIND_CORE, JOB_BIND_SOCKET, JOB_BIND_NUMA, JOB_BIND_NONE };
enum job_precision { JOB_PRECISION_FP32, JOB_PRECISION_BF16 };
enum job_core {
    JOB_CORE_NONE = -2,
    JOB_CORE_AUTO = -1
}; /* storage of the words that comm.core accepts */
enum job_scaling { JOB_SCALING_LINEAR, JOB_SCALING_SQRT, JOB_SCALING_NONE };
enum job_decay {
    JOB_DECAY_POLY,
    JOB_DECAY_COSINE,
    JOB_DECAY_STEP,
    JOB_DECAY_EXPONENTIAL,
    JOB_DECAY_PLATEAU,
    JOB_DECAY_NONE
};
enum job_optimizer {
    JOB_OPTIMIZER_SGD,
    JOB_OPTIMIZER_SGDW,
    JOB_OPTIMIZER_LARS,
    JOB_OPTIMIZER_ADAM,
    JOB_OPTIMIZER_ADAMW,
    JOB_OPTIMIZER_RMSPROP,
    JOB_OPTIMIZER_ADAGRAD,
    JOB_OPTIMIZER_ADADELTA
};
enum job_monitor { JOB_MONITOR_TOP1, JOB_MONITOR_LOSS };
enum job_rounding { JOB_ROUNDING_FLOOR, JOB_ROUNDING_EXACT };
enum job_batch_schedule { JOB_BATCH_CONSTANT, JOB_BATCH_FILL };
enum job_rescale { JOB_RESCALE_RESCALE, JOB_RESCALE_KEEP_BATCH };

#define JOB_AFTER_MAX         64
#define JOB_MILESTONES_MAX    32
#define JOB_CLASS_WEIGHTS_MAX 1000
#define JOB_KEEP_BEST_MAX     100
#define JOB_MPI_ARGS_MAX      64
#define JOB_HOSTS_MAX         4096
#define JOB_ENV_MAX           64
#define JOB_TAGS_MAX          17   /* 16, and one that replaced the star of older versions */
#define JOB_NOTE_MAX          4096 /* in characters */

/* The spec owns its strings; NULL represents JSON null. A list of strings is NULL or
 * NULL-terminated. Optional numbers have a has_ flag. */
struct job_spec {
    char *name;
    char **tags; /* these two, and the name: values at the start of the job; the store has the
                    current ones */
    size_t tag_count;
    char *note;
    char *preset;
    bool has_reproduces;
    int64_t reproduces; /* id of a job */
    enum job_mode mode;
    struct {
        char *arch; /* name in common/net/arch.c */
        int64_t classes;
        int64_t
            image_size; /* pixels, square; with several sizes the last one, which is the largest */
        struct job_sizes sizes; /* by epoch; count 0 or 1: always image_size */
        enum job_stem stem;
        double width;   /* factor of the number of channels: common/net/arch.h */
        double dropout; /* rate of the dropout before the classifier; 0: off */
        char *init;     /* .safetensors file */
        char **freeze;  /* parts that are not trained, or "backbone": arch_frozen_parts */
        size_t freeze_count;
        double bn_decay;
        bool blur_pool;
        enum job_bn_init bn_init;
        bool zero_init_residual;
        bool winograd;
        char *winograd_tiles; /* in the form of JOB_TEXT_TILES; NULL: measured */
        enum job_gemm gemm;
    } model;
    struct {
        char *train; /* folder, or "synthetic" */
        char *eval;  /* NULL: no evaluation */
        bool has_train_images, has_eval_images;
        int64_t train_images, eval_images;
        enum job_preprocess preprocess;
        bool augment, random_crop, random_flip; /* augment enables the other two */
        enum job_flip flip;                     /* of random_flip */
        bool shuffle;
        enum job_locality locality;
        enum job_auto_augment auto_augment;
        int64_t auto_augment_ops, auto_augment_magnitude; /* of randaugment */
        double color_jitter, hue_jitter, random_erasing;
        double mixup, cutmix; /* alpha of Beta(alpha, alpha); 0: off */
        int64_t
            prefetch_threads; /* 0: chosen by the loader such that they keep up with the engine */
        int64_t prefetch_batches; /* number prepared ahead */
    } data;
    struct {
        enum job_launcher launcher;
        int64_t nodes;
        int64_t workers_per_node;   /* 0: chosen by the plan (common/plan/workers.h) */
        int64_t threads_per_worker; /* 0: cores (smt: hardware threads) / workers */
        enum job_bind bind;
        bool smt; /* slots are hardware threads instead of cores */
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
    int64_t global_batch;     /* as in the document; job_batch_settle derives the next two */
    int64_t batch_per_worker; /* images per forward pass */
    bool states_batch;        /* not a key: the document itself gives batch_per_worker */
    int64_t accumulate_steps; /* 0: "auto", before job_batch_settle */
    enum job_batch_schedule batch_schedule;
    double epochs;
    enum job_rounding steps_rounding;
    bool has_steps;
    int64_t steps;
    double stop_at; /* part of the steps to train */
    bool has_continues;
    int64_t continues; /* id of a job */
    int64_t seed;
    enum job_precision precision;
    enum job_loss loss;
    double loss_scale;
    double class_weights[JOB_CLASS_WEIGHTS_MAX];
    size_t class_weight_count; /* 0: all are 1 */
    struct {
        double base;
        int64_t base_batch;
        enum job_scaling scaling;
        double factor, head_factor; /* the latter for the classifier, besides */
        bool has_start;
        double start;
        double warmup_epochs;
        enum job_decay decay;
        double power;
        double end;
        double milestones[JOB_MILESTONES_MAX]; /* in epochs */
        size_t milestone_count;
        double gamma;
        double decay_epochs;
        bool staircase;
        int64_t patience, cooldown; /* evaluations */
        double threshold;
    } lr;
    struct job_optimizer_keys {
        enum job_optimizer name;
        double momentum;
        bool nesterov;
        double weight_decay;
        bool decay_bn;
        double lars_eta;
        bool momentum_correction;
        double beta1, beta2, eps; /* adam, adamw; eps is for all adaptive optimisers */
        double alpha;             /* rmsprop */
        bool centered;
        double lr_decay;  /* adagrad */
        double rho;       /* adadelta */
        double clip_norm; /* 0: none */
        double label_smoothing;
    } optimizer;
    struct {
        double every_epochs; /* 0: only at the end */
        int64_t batch;
        enum job_monitor monitor;
        int64_t patience; /* evaluations; 0: no early end */
        double min_delta;
        bool has_target_top1;
        double target_top1; /* fraction, 0 to 1 */
        bool stop_at_target;
        bool predictions;
        bool has_image_size;
        int64_t image_size; /* job_spec_eval_size */
        bool has_resize;
        int64_t resize;
        bool flip;
    } eval;
    struct {
        double decay, half_life; /* per step, or in steps; both 0: do not average weights */
        int64_t every;           /* steps */
        double from_epoch;
        bool warmup;
    } ema;
    struct {
        double every_epochs;
        int64_t every_steps;
        int64_t keep; /* 0: "auto" */
        int64_t keep_best;
        bool disable;
    } checkpoint;
    struct {
        int64_t fusion_bytes;
        enum job_precision dtype; /* of the gradients in messages */
        bool overlap;
        int64_t core; /* CPU number, or enum job_core */
    } comm;
    struct {
        bool has_steps;
        int64_t first_step, last_step;
    } profile;
    struct {
        double every_seconds; /* 0: not used */
        int64_t every_steps;  /* 0: not used */
    } log;
    struct {
        int64_t every_steps;
    } tensorboard;
    struct {
        int64_t max;
        enum job_rescale on_fewer_nodes;
        bool grow;
        int64_t grow_seconds;
    } restart;
    int64_t priority;
    double after[JOB_AFTER_MAX]; /* ids of jobs */
    size_t after_count;
    struct notice_rules notify; /* only used by the daemon */
    json_t
        *from_data; /* not a key: which values were derived from the data, for explaining a plan */
    int64_t recipe_images; /* not a key: number of training images the preset was made for, or 0 */
};

/* Returns whether the path stands for random images instead of a folder. False for NULL. */
bool job_spec_is_synthetic(const char *path);

/* Returns whether the loader rounds images to bf16: not if it mixes them, in fp32. */
static inline bool job_spec_has_bf16_images(const struct job_spec *spec)
{
    return spec->precision == JOB_PRECISION_BF16 && spec->data.mixup == 0 && spec->data.cutmix == 0;
}

/* Returns whether the class weights are derived from the training data. */
static inline bool job_spec_balances(const struct job_spec *spec)
{
    return spec->class_weight_count && spec->class_weights[0] < 0; /* the word of the key */
}

int64_t job_spec_eval_size(const struct job_spec *spec);

/* Returns the shorter side of images before their centre of this size is cut, by default:
 * 256/224 of it; and that of a job's evaluations. */
int job_default_resize(int64_t size);
int64_t job_spec_eval_resize(const struct job_spec *spec);

/* How a pixel v, from 0 to 255, of red, green or blue becomes the network's input:
 * (v / range - mean) / deviation. */
struct job_pixels {
    float range, mean[3], deviation[3];
};
const struct job_pixels *job_pixels_of(enum job_preprocess preprocess);

/* Returns whether the job averages its weights (the group ema), and the decay of an update. */
bool job_spec_averages(const struct job_spec *spec);
double job_spec_average_decay(const struct job_spec *spec);

/* Returns whether an update needs norms of all gradients first. Ranks of one machine do not share
 * it then. */
bool job_optimizer_norms_first(const struct job_optimizer_keys *keys);

static inline bool job_spec_leaves_workers(const struct job_spec *spec)
{
    return spec->cluster.workers_per_node == 0;
}

int64_t job_spec_world_size(const struct job_spec *spec);

bool job_spec_names_hosts(const struct job_spec *spec);

/* cluster.env, the environment of the ranks. These rules hold for all users; an administrator's
 * list restricts users further (daemon/http/access/job_policy.h). */

#define JOB_ENV_NAME_BYTES 129 /* including the NUL */

/* Copies the name of "NAME=value" and returns a pointer to the value within it. */
const char *job_env_split(const char *variable, char name[JOB_ENV_NAME_BYTES]);

const char *job_env_value(const struct job_spec *spec, const char *name);

/* Returns whether no document may set the variable, because it loads code, starts programs, names
 * files or search paths (LD_PRELOAD, PATH, UCX_MODULE_DIR), or belongs to a launcher. */
bool job_env_is_refused(const char *name);

/* Returns what sets the variable instead: a key, or a text for a message; NULL: nothing does. */
const char *job_env_setter(const char *name);
