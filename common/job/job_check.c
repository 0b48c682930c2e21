#include "common/job/job_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/job/job_options.h"
#include "common/job/job_spec.h"
#include "common/net/arch.h"
#include "common/system/host.h"

static void job_check_demand(bool right, const char *pointer, const char *message,
                             struct problems *problems)
{
    if (!right && !problems_about(problems, pointer))
        problems_add(problems, pointer, NULL, "%s", message);
}

static bool job_check_ascending(const double *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (values[i] <= values[i - 1])
            return false;
    return true;
}

static const char *job_check_wrong_host(const struct job_spec *spec, size_t i, json_t *seen)
{
    struct host host;
    int64_t threads = spec->cluster.threads_per_worker > 0 ? spec->cluster.threads_per_worker : 1;

    host_parse(spec->cluster.hosts[i], &host); /* valid, checked by job_text.c */
    if (host.slots && host.slots / threads < spec->cluster.workers_per_node)
        return "has fewer slots than a node of this job takes: workers_per_node x "
               "threads_per_worker";
    if (json_object_get(seen, host.name))
        return "names the same host a second time: write each once, and its cores as "
               "name:slots";
    json_object_set_new(seen, host.name, json_true());
    return NULL;
}

static void check_hosts(const struct job_spec *spec, struct problems *p)
{
    char pointer[64];
    json_t *seen = json_object();

    const char *wrong = NULL; /* only the first problem: the range is invalid as a whole */
    for (size_t i = 0; spec->cluster.hosts && i < spec->cluster.host_count && !wrong; i++) {
        wrong = job_check_wrong_host(spec, i, seen);
        snprintf(pointer, sizeof pointer, "/cluster/hosts/%zu", i);
        if (wrong && !problems_about(p, pointer))
            problems_add(p, pointer, NULL, "%s %s", spec->cluster.hosts[i], wrong);
    }
    json_decref(seen);
    job_check_demand(!spec->cluster.hosts ||
                         spec->cluster.host_count >= (size_t)spec->cluster.nodes ||
                         problems_about(p, "/cluster/nodes"),
                     "/cluster/hosts", "names fewer hosts than cluster.nodes asks for", p);
}

static void check_ssh_port(const struct job_spec *spec, struct problems *p)
{
    bool hosts = spec->cluster.launcher == JOB_LAUNCHER_LOCAL && spec->cluster.hosts;

    job_check_demand(
        !spec->cluster.has_ssh_port || hosts || problems_about(p, "/cluster/hosts") ||
            problems_about(p, "/cluster/launcher"),
        "/cluster/ssh_port",
        "is for hosts that are reached over ssh: name them in cluster.hosts, with launcher "
        "\"local\"",
        p);
}

static void check_grow(const struct job_spec *spec, struct problems *p)
{
    bool hosts = spec->cluster.launcher == JOB_LAUNCHER_LOCAL && spec->cluster.hosts;

    job_check_demand(!spec->restart.grow || hosts || problems_about(p, "/cluster/hosts") ||
                         problems_about(p, "/cluster/launcher"),
                     "/restart/grow",
                     "must be false without cluster.hosts, and with launcher \"slurm\", which "
                     "starts each attempt on cluster.nodes nodes, so that the job never has fewer",
                     p);
}

static void job_check_env(const struct job_spec *spec, struct problems *p)
{
    char name[JOB_ENV_NAME_BYTES], pointer[JOB_ENV_NAME_BYTES + 16];

    for (size_t i = 0; i < spec->cluster.env_count; i++) {
        job_env_split(spec->cluster.env[i], name);
        snprintf(pointer, sizeof pointer, "/cluster/env/%s", name);
        const char *setter = job_env_setter(name);
        if (setter)
            problems_add(p, pointer, NULL, "%s is set by %s", name, setter);
        else if (job_env_is_refused(name))
            problems_add(p, pointer, NULL,
                         "%s cannot be set by a job, regardless of job_env_prefixes in "
                         "traind.conf: variables with this name or prefix load code, start "
                         "programs, name files or belong to a launcher",
                         name);
        else
            continue;
        return;
    }
}

static void job_check_sizes(const struct job_spec *spec, const struct arch *arch,
                            struct problems *p)
{
    const struct job_sizes *sizes = &spec->model.sizes;
    int64_t least = sizes->count ? sizes->at[0].size : spec->model.image_size;

    job_check_demand(arch->family == ARCH_CNN || least >= 32, "/model/image_size",
                     "must be at least 32 for a ResNet; only arch \"cnn\" takes 28", p);
    job_check_demand(arch->family != ARCH_CNN || sizes->count < 2, "/model/image_size",
                     "must be one size with arch \"cnn\": its hidden layer has weights for each "
                     "pixel",
                     p);
    job_check_demand(arch->family == ARCH_CNN || job_spec_eval_size(spec) >= 32 ||
                         problems_about(p, "/model/image_size"),
                     "/eval/image_size", "must be at least 32 for a ResNet", p);
    job_check_demand(arch->family != ARCH_CNN || !spec->eval.has_image_size ||
                         spec->eval.image_size == spec->model.image_size,
                     "/eval/image_size", "must be model.image_size with arch \"cnn\"", p);
    job_check_demand(!spec->eval.has_resize || spec->eval.resize >= job_spec_eval_size(spec) ||
                         problems_about(p, "/eval/image_size") ||
                         problems_about(p, "/model/image_size"),
                     "/eval/resize",
                     "must not be smaller than the size of evaluation images (eval.image_size)", p);
    job_check_demand(!spec->eval.has_resize || spec->data.preprocess != JOB_PREPROCESS_WHOLE,
                     "/eval/resize",
                     "must be null with data.preprocess \"whole\", which cuts nothing", p);
}

static void job_check_augmentation(const struct job_spec *spec, struct problems *p)
{
    const struct {
        const char *key;
        bool set;
    } parts[] = {
        {"/data/auto_augment",   spec->data.auto_augment != JOB_AUTO_AUGMENT_NONE},
        {"/data/color_jitter",   spec->data.color_jitter > 0                     },
        {"/data/hue_jitter",     spec->data.hue_jitter > 0                       },
        {"/data/random_erasing", spec->data.random_erasing > 0                   },
    };

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        job_check_demand(!parts[i].set || spec->data.augment, parts[i].key,
                         "needs data.augment true", p);
        job_check_demand(!parts[i].set || !spec->data.train ||
                             !job_spec_is_synthetic(spec->data.train),
                         parts[i].key, "has no effect on synthetic images", p);
    }
}

static void job_check_batches(const struct job_spec *spec, struct problems *p)
{
    const struct job_sizes *sizes = &spec->model.sizes;
    bool whole = true;

    if (spec->batch_schedule != JOB_BATCH_FILL || spec->mode == JOB_MODE_EVAL)
        return;
    for (size_t i = 0; i < sizes->count; i++)
        whole = whole && sizes->at[i].epoch == floor(sizes->at[i].epoch);
    job_check_demand(
        whole || spec->steps_rounding == JOB_ROUNDING_EXACT ||
            problems_about(p, "/model/image_size") || problems_about(p, "/steps_rounding"),
        "/batch_schedule",
        "\"fill\" changes the batch where the size of the images changes, which must be "
        "between two epochs: give model.image_size whole epochs, or set "
        "steps_rounding to \"exact\"",
        p);
    job_check_demand(spec->restart.on_fewer_nodes != JOB_RESCALE_KEEP_BATCH || sizes->count < 2 ||
                         problems_about(p, "/restart/on_fewer_nodes"),
                     "/restart/on_fewer_nodes",
                     "must be \"rescale\" with batch_schedule \"fill\": on fewer workers, the "
                     "batches that fill a worker's memory cannot stay as they are",
                     p);
}

static void job_check_freeze(const struct job_spec *spec, const struct arch *arch,
                             struct problems *p)
{
    char parts[96];

    if (arch_frozen_parts(arch, spec->model.freeze, spec->model.freeze_count) < 0 &&
        !problems_about(p, "/model/freeze"))
        problems_add(p, "/model/freeze", NULL,
                     "must be \"backbone\", or the first parts of %s without a gap, as a trained "
                     "part needs gradients from all behind it: %s",
                     arch->name, arch_list_parts(arch, parts, sizeof parts));
}

static void check_model(const struct job_spec *spec, struct problems *p)
{
    const struct arch *arch = arch_find(spec->model.arch);

    if (!arch || problems_about(p, "/model/arch"))
        return;
    job_check_sizes(spec, arch, p);
    job_check_freeze(spec, arch, p);
    job_check_demand(arch->family != ARCH_CNN || spec->data.preprocess == JOB_PREPROCESS_WHOLE,
                     "/data/preprocess",
                     "must be \"whole\" with arch \"cnn\": it takes grey images as they are", p);
    job_check_demand(
        arch_takes_width(arch, spec->model.width), "/model/width",
        "must leave this network's groups 4, 8, 16, ... channels: 1, 2, 4 or 8 with groups of 4, "
        "and 0.5 too with groups of 8",
        p);
    if (spec->precision != JOB_PRECISION_BF16 || problems_about(p, "/model/width"))
        return;
    struct arch_shape shape = arch_shape_of(spec);
    job_check_demand(arch->family != ARCH_CNN, "/precision",
                     "\"bf16\" is not supported by this version with arch \"cnn\"", p);
    job_check_demand(arch->family == ARCH_CNN || arch_takes_bf16(&shape), "/model/width",
                     "must leave channels in multiples of 32 with precision \"bf16\"", p);
    job_check_demand(spec->model.gemm != JOB_GEMM_OPENBLAS, "/model/gemm",
                     "must be \"auto\" or \"own\" with precision \"bf16\": OpenBLAS multiplies "
                     "fp32",
                     p);
}

static void job_check_mpi_args(const struct job_spec *spec, struct problems *p)
{
    static const char *const binding[] = {
        "map-by",   "bind-to",    "cpu-set", "cpu-list", "use-hwthread-cpus", "rankfile",
        "npernode", "npersocket", "bynode",  "bycore",   "bysocket",          "rf"};
    char pointer[64];

    if (spec->cluster.bind == JOB_BIND_AUTO && !spec->cluster.smt)
        return;
    for (size_t i = 0; i < spec->cluster.mpi_arg_count; i++)
        for (size_t k = 0; k < sizeof binding / sizeof binding[0]; k++) {
            const char *argument = spec->cluster.mpi_args[i];
            snprintf(pointer, sizeof pointer, "/cluster/mpi_args/%zu", i);
            job_check_demand(
                *argument != '-' || strcmp(argument + strspn(argument, "-"), binding[k]) != 0,
                pointer, "conflicts with cluster.bind and cluster.smt: use only one of them", p);
        }
}

static void job_check_formats(const struct job_spec *spec, bool eval_mode, struct problems *p)
{
    bool scaled = spec->loss_scale != 1 && !problems_about(p, "/loss_scale");

    job_check_demand(!eval_mode || !spec->has_continues, "/continues",
                     "must be null with mode \"eval\": there is no training to go on with", p);
    job_check_demand(!scaled || !eval_mode, "/loss_scale",
                     "must be 1 with mode \"eval\", which has no gradients to scale", p);
    job_check_demand(!scaled || eval_mode || spec->precision == JOB_PRECISION_BF16 ||
                         problems_about(p, "/precision"),
                     "/loss_scale",
                     "must be 1 with precision \"fp32\", which needs no gradient scaling; set "
                     "precision to \"bf16\" or omit loss_scale",
                     p);
    job_check_demand(
        spec->comm.dtype == JOB_PRECISION_FP32 || !eval_mode || problems_about(p, "/comm/dtype"),
        "/comm/dtype", "must be \"fp32\" when mode is \"eval\": no gradients are summed", p);
}

static void job_check_class_weights(const struct job_spec *spec, struct problems *p)
{
    static const char key[] = "/class_weights";
    size_t count = spec->class_weight_count, above = 0;
    bool balances = job_spec_balances(spec);

    for (size_t i = 0; i < count; i++)
        above += spec->class_weights[i] > 0;
    job_check_demand(count == 0 || balances || above > 0, key,
                     "must have a number above 0: nothing is learned with 0", p);
    job_check_demand(
        !balances || spec->mode == JOB_MODE_EVAL || !job_spec_is_synthetic(spec->data.train), key,
        "\"balanced\" needs images to count, but the labels of synthetic ones are random: give a "
        "number for each class",
        p);
    if (count && !balances && count != (size_t)spec->model.classes && !problems_about(p, key) &&
        !problems_about(p, "/model/classes"))
        problems_add(p, key, NULL,
                     "must have %lld numbers, one for each class (model.classes) in the order of "
                     "the class folders, not %zu",
                     (long long)spec->model.classes, count);
}

static void job_check_monitor(const struct job_spec *spec, bool eval_mode, struct problems *p)
{
    bool plateau = spec->lr.decay == JOB_DECAY_PLATEAU,
         often = !eval_mode && (plateau || spec->eval.patience > 0);
    const char *key = spec->eval.patience > 0 ? "/eval/patience"
                      : plateau               ? "/lr/decay"
                                              : "/checkpoint/keep_best";

    job_check_demand((!often && (spec->checkpoint.keep_best == 0 || eval_mode)) ||
                         spec->data.eval || problems_about(p, "/data/eval"),
                     key, "needs data.eval, whose evaluations it follows", p);
    job_check_demand(!often || spec->eval.every_epochs > 0 ||
                         problems_about(p, "/eval/every_epochs"),
                     key, "needs eval.every_epochs, the interval between evaluations", p);
    job_check_demand(spec->checkpoint.keep_best == 0 || !spec->checkpoint.disable,
                     "/checkpoint/keep_best", "must be 0 with checkpoint.disable", p);
}

void job_check_together(const struct job_spec *spec, struct problems *p)
{
    bool mode_known = !problems_about(p, "/mode"),
         eval_mode = mode_known && spec->mode == JOB_MODE_EVAL;

    job_check_demand(
        !mode_known || eval_mode || spec->data.train, "/data/train",
        "is required: a folder of TFRecord shards or of class folders, or \"synthetic\"", p);
    job_check_demand(!eval_mode || spec->data.eval, "/data/eval",
                     "is required when mode is \"eval\": the images to evaluate on", p);
    job_check_demand(
        !eval_mode || spec->model.init || job_spec_is_synthetic(spec->data.eval), "/model/init",
        "is required when mode is \"eval\": the weights to evaluate (a safetensors file)", p);
    job_check_demand(!spec->eval.stop_at_target || spec->eval.has_target_top1 ||
                         problems_about(p, "/eval/target_top1"),
                     "/eval/stop_at_target", "needs eval.target_top1, the accuracy to stop at", p);
    job_check_demand(
        !spec->eval.stop_at_target || spec->data.eval || problems_about(p, "/data/eval"),
        "/eval/stop_at_target", "needs data.eval, the images to measure the accuracy on", p);
    job_check_augmentation(spec, p);
    job_check_monitor(spec, eval_mode, p);
    job_check_class_weights(spec, p);
    job_check_demand(!spec->eval.predictions || spec->data.eval || problems_about(p, "/data/eval"),
                     "/eval/predictions", "needs data.eval, the images to write predictions of", p);
    job_check_demand(!job_spec_averages(spec) || !eval_mode,
                     spec->ema.decay > 0 ? "/ema/decay" : "/ema/half_life",
                     "must be 0 when mode is \"eval\": nothing is trained; model.init takes a "
                     "checkpoint's ema.safetensors",
                     p);
    job_check_demand(spec->ema.decay == 0 || spec->ema.half_life == 0 ||
                         problems_about(p, "/ema/decay"),
                     "/ema/half_life",
                     "must be 0 with ema.decay: they are two ways to state the same, use one", p);
    job_check_demand(!spec->has_steps && job_spec_averages(spec)
                         ? spec->ema.from_epoch < spec->epochs || problems_about(p, "/epochs")
                         : true,
                     "/ema/from_epoch", "must be before the end of the run (epochs)", p);
    job_check_demand(job_check_ascending(spec->lr.milestones, spec->lr.milestone_count),
                     "/lr/milestones", "must be ascending", p);
    job_check_demand(
        spec->steps_rounding != JOB_ROUNDING_EXACT || spec->data.locality != JOB_LOCALITY_NODE ||
            problems_about(p, "/data/locality"),
        "/steps_rounding",
        "exact needs data.locality \"global\": with \"node\" the nodes' epochs end apart", p);
    check_model(spec, p);
    job_check_batches(spec, p);
    job_check_formats(spec, eval_mode, p);
    check_hosts(spec, p);
    check_grow(spec, p);
    check_ssh_port(spec, p);
    job_check_env(spec, p);
    job_check_mpi_args(spec, p);
}

int64_t job_batch_even(int64_t share, int64_t max)
{
    int64_t batch = share < max ? share : max;

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
    int64_t max = spec->batch_per_worker, batch = job_batch_even(share, max);

    if (share > max && 2 * batch < max) {
        int64_t world = job_spec_world_size(spec), count = (share + max - 1) / max;
        long long below = share / count * count * world,
                  above = (share / count + 1) * count * world;
        problems_add(problems, "/global_batch", NULL,
                     "a worker's %lld images have no equal batches of %lld to %lld images: with "
                     "accumulate_steps %lld the nearest that have are %lld and %lld",
                     (long long)share, (long long)(max + 1) / 2, (long long)max, (long long)count,
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
    int64_t max = (int64_t)job_option_find("/batch_per_worker")->max;

    if (stated && spec->batch_per_worker != batch)
        problems_add(problems, "/batch_per_worker", NULL,
                     "%lld images a worker do not make the global_batch of %lld, that takes %lld: "
                     "leave one of the two out",
                     (long long)spec->batch_per_worker, (long long)spec->global_batch,
                     (long long)batch);
    else if (batch > max)
        problems_add(problems, "/global_batch", NULL,
                     "makes %lld images a worker, more than the %lld that it may handle at a time: "
                     "use more workers, or accumulate_steps \"auto\"",
                     (long long)batch, (long long)max);
    else
        spec->batch_per_worker = batch;
}

static void job_check_settle_batch(struct job_spec *spec, bool stated, struct problems *problems)
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
        job_check_settle_batch(spec, stated, problems);
    else if (known && spec->accumulate_steps == 0)
        problems_add(problems, "/accumulate_steps", NULL,
                     "\"auto\" needs global_batch, the images that it shares out");
    if (spec->accumulate_steps == 0)
        spec->accumulate_steps = 1;
}
