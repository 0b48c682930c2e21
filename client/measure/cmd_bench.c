#include <math.h>
#include <string.h>

#include "client/cmd.h"
#include "client/local.h"
#include "client/measure/bench.h"
#include "client/measure/speeds.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/job/job_document.h"
#include "common/json.h"
#include "common/text.h"
#include "launch/launch.h"

#define STEPS_DEFAULT "5"

/* Options that set keys of the job document. Without a fallback, the key's own default applies,
 * which may depend on the network. */
static const struct {
    const char *option, *pointer, *fallback;
} keys[] = {
    {"arch",       "/model/arch",                 "resnet50"},
    {"image-size", "/model/image_size",           NULL      },
    {"batch",      "/batch_per_worker",           "16"      },
    {"workers",    "/cluster/workers_per_node",   "2"       },
    {"threads",    "/cluster/threads_per_worker", "0"       },
    {"precision",  "/precision",                  "fp32"    },
    {"gemm",       "/model/gemm",                 "auto"    },
};
#define KEY_COUNT (sizeof keys / sizeof keys[0])

struct run {
    struct job_spec *spec;
    long steps;
};

static json_t *bench_make_document(const struct cmd_args *args, long steps)
{
    json_t *d = json_object();
    bool eval = cmd_flag(args, "eval");
    const char *end;
    long long number;

    for (size_t i = 0; i < KEY_COUNT; i++) {
        const char *text = cmd_value(args, keys[i].option);
        if (!text)
            text = keys[i].fallback;
        if (text)
            json_set_at(d, keys[i].pointer,
                        cmd_whole(text, &end, &number) && !*end ? json_integer(number)
                                                                : json_string(text));
    }
    double batch = json_get_number(d, "batch_per_worker", 0);
    double workers = json_get_number(json_object_get(d, "cluster"), "workers_per_node", 0);
    double images = fmin(fmax(batch * workers * (double)(steps + 1), 1), 1e12);
    json_set_at(d, "/mode", json_string(eval ? "eval" : "train"));
    json_set_at(d, "/data/train", json_string("synthetic"));
    json_set_at(d, "/data/train_images", json_integer((json_int_t)images));
    json_set_at(d, "/checkpoint/disable", json_true());
    json_set_at(d, "/lr/warmup_epochs", json_integer(0));
    json_set_at(d, "/lr/scaling",
                json_string("none")); /* with random labels, large batches must not diverge */
    json_set_at(d, "/lr/base", json_number(0.001));
    if (eval) {
        json_set_at(d, "/data/eval", json_string("synthetic"));
        json_set_at(d, "/eval/batch", json_incref(json_object_get(d, "batch_per_worker")));
    } else {
        json_set_at(d, "/steps", json_integer(steps + 1));
    }
    return d;
}

static int bench_refuse(const struct problems *problems, struct error *e)
{
    char key[PROBLEM_KEY_BYTES];

    for (size_t i = 0; i < problems->count; i++) {
        const struct problem *p = &problems->items[i];
        const char *option = NULL;
        for (size_t k = 0; k < KEY_COUNT && !option; k++)
            option = strcmp(keys[k].pointer, p->pointer) == 0 ? keys[k].option : NULL;
        if (option && p->suggestion)
            return error_set(e, ERR_USAGE, "--%s: %s; did you mean %s?", option, p->message,
                             p->suggestion);
        if (option)
            return error_set(e, ERR_USAGE, "--%s: %s", option, p->message);
    }
    return error_set(e, ERR_INTERNAL, "%s: %s", problem_key(problems->items[0].pointer, key),
                     problems->items[0].message);
}

static int bench_make_spec(const struct cmd_args *args, struct run *r, struct error *e)
{
    struct problems problems = {0};
    const char *steps = cmd_value(args, "steps");
    int status = cmd_number(steps ? steps : STEPS_DEFAULT, "steps", 1, 100000, &r->steps, e);

    if (status)
        return status;
    json_t *document = bench_make_document(args, r->steps);
    r->spec = job_spec_parse(document, NULL, NULL, &problems);
    if (!r->spec)
        status = bench_refuse(&problems, e);
    else if (job_spec_leaves_workers(r->spec))
        status = error_set(e, ERR_USAGE,
                           "--workers must be 1 or more: a bench measures exactly what is "
                           "asked for");
    json_decref(document);
    problems_clear(&problems);
    return status;
}

static void bench_show_json(const struct run *r, const struct bench *b)
{
    json_t *phases = json_object();

    for (int i = 0; i < BENCH_PHASES; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s_ms", bench_phase_name((enum bench_phase)i));
        json_object_set_new(phases, name, json_number(b->phase_ms[i]));
    }
    json_t *answer = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:I, s:o, s:o}",
        "arch", r->spec->model.arch, "mode", b->evaluates ? "eval" : "train", "image_size",
        (json_int_t)r->spec->model.image_size, "batch", (json_int_t)r->spec->batch_per_worker,
        "workers", (json_int_t)r->spec->cluster.workers_per_node, "threads",
        (json_int_t)local_threads(r->spec), "precision",
        r->spec->precision == JOB_PRECISION_BF16 ? "bf16" : "fp32", "gemm", b->gemm, "steps",
        (int)b->steps, "images_per_sec", json_number(b->images_per_sec), "gflops",
        json_number(b->gflops), "gflop_per_image", json_number(b->gflop_per_image), "peak_gflops",
        json_number(b->peak_gflops), "share_of_peak",
        b->peak_gflops > 0 ? json_number(b->gflops / b->peak_gflops) : json_null(), "gb_per_image",
        json_number(b->gb_per_image), "gb_per_sec", json_number(b->gb_per_sec), "stream_gb_per_sec",
        json_number(b->stream_gb_per_sec), "share_of_stream",
        b->stream_gb_per_sec > 0 ? json_number(b->gb_per_sec / b->stream_gb_per_sec) : json_null(),
        "memory_bytes_per_worker", (json_int_t)b->memory_bytes, "step_ms", json_number(b->step_ms),
        "phases", phases);
    print_json(answer);
    json_decref(answer);
}

static void bench_warn_of_crowding(const struct job_spec *s)
{
    int64_t wanted = s->cluster.workers_per_node * local_threads(s),
            cores = launch_node_slots(s->cluster.smt);

    if (wanted > cores)
        fprintf(stderr,
                "trainctl: warning: %lld threads share %lld core%s, so the results are unreliable; "
                "--workers times --threads should not exceed the cores\n",
                (long long)wanted, (long long)cores, plural(cores));
}

static void bench_show_memory(struct libscols_table *table, const struct bench *b)
{
    char value[FORMAT_BYTES], remark[96];

    if (!(b->gb_per_image > 0 && b->stream_gb_per_sec > 0))
        return;
    snprintf(value, sizeof value, "%.3g", b->gb_per_sec);
    snprintf(remark, sizeof remark, "at least, from and to memory: %.3g GB per image",
             b->gb_per_image);
    table_row(table, "GB/s", value, remark);
    snprintf(value, sizeof value, "%.1f %%", 100 * b->gb_per_sec / b->stream_gb_per_sec);
    snprintf(remark, sizeof remark, "%.1f GB/s, STREAM on the same cores", b->stream_gb_per_sec);
    table_row(table, "share of STREAM", value, remark);
}

static void bench_show_table(const struct run *r, const struct bench *b)
{
    struct libscols_table *table = table_create(0, ",>,|");
    const struct job_spec *s = r->spec;
    char name[32], value[FORMAT_BYTES], remark[96];

    print_prose(
        "%s, %s at %lldx%lld, batch %lld per worker, %lld worker%s x %lld thread%s; median of %ld "
        "step%s",
        s->model.arch, b->evaluates ? "evaluation" : "training", (long long)s->model.image_size,
        (long long)s->model.image_size, (long long)s->batch_per_worker,
        (long long)s->cluster.workers_per_node, plural(s->cluster.workers_per_node),
        (long long)local_threads(s), plural(local_threads(s)), b->steps, plural(b->steps));
    putchar('\n');
    snprintf(value, sizeof value, "%.4g", b->images_per_sec);
    table_row(table, "images/s", value, "all workers");
    table_row(table, "convolutions", b->gemm,
              strcmp(b->gemm, "own") ? "by im2col and OpenBLAS" : "by the engine's kernels");
    snprintf(value, sizeof value, "%.1f", b->gflops);
    snprintf(remark, sizeof remark, "%.3g GFLOP per image", b->gflop_per_image);
    table_row(table, "GFLOP/s", value, remark);
    snprintf(value, sizeof value, "%.2f x", b->gflops / b->peak_gflops);
    snprintf(remark, sizeof remark, "%.1f GFLOP/s, SGEMM on the same cores%s", b->peak_gflops,
             b->gflops > b->peak_gflops ? "; Winograd needs fewer products than are counted" : "");
    table_row(table, "speed of SGEMM", b->peak_gflops > 0 ? value : "-", remark);
    bench_show_memory(table, b);
    table_row(table, "memory per worker", format_size(value, sizeof value, b->memory_bytes),
              "maximum resident memory");
    snprintf(value, sizeof value, "%.1f ms", b->step_ms);
    table_row(table, b->evaluates ? "batch" : "step", value, "");
    for (int i = 0; i < BENCH_PHASES; i++) {
        if (b->evaluates && i != BENCH_FORWARD)
            continue;
        snprintf(name, sizeof name, "  %s", bench_phase_name((enum bench_phase)i));
        snprintf(value, sizeof value, "%.1f ms", b->phase_ms[i]);
        snprintf(remark, sizeof remark, "%.1f %% of the step", 100 * b->phase_ms[i] / b->step_ms);
        table_row(table, name, value, remark);
    }
    table_finish(table);
}

static int cmd_bench(const struct cmd_args *args)
{
    struct run r = {0};
    struct bench bench;
    struct error e;

    int status = bench_make_spec(args, &r, &e);
    if (!status)
        bench_warn_of_crowding(r.spec);
    if (!status)
        status = bench_run(r.spec, &bench, &e);
    /* Predictions assume default settings. */
    if (!status && !bench.evaluates && r.spec->model.gemm == JOB_GEMM_AUTO)
        speeds_keep(r.spec, &bench);
    if (!status && client.json)
        bench_show_json(&r, &bench);
    else if (!status)
        bench_show_table(&r, &bench);
    job_spec_destroy(r.spec);
    return status ? cmd_fail(&e) : 0;
}

/* clang-format off */
const struct cmd cmd_bench_entry = {
    .name = "bench", .synopsis = "[--arch A] [--image-size S] [--batch B] [--workers W] [--threads T] [--steps N] [--precision P] [--gemm G] [--eval]",
    .help = "measure training or evaluation speed on this machine", .example = "trainctl bench --arch resnet18 --workers 2 --threads 1",
    .run = cmd_bench,
    .options = {
        OPTION("arch", 0, "A", "the network (resnet50)", "/model/arch"),
        OPTION("image-size", 0, "S", "width and height of the images in pixels (224)", NULL),
        OPTION("batch", 0, "B", "images per worker and step (16)", NULL),
        OPTION("workers", 0, "W", "workers, which are MPI processes (2)", NULL),
        OPTION("threads", 0, "T", "threads per worker (0: cores / workers)", NULL),
        OPTION("steps", 0, "N", "measured steps, after one to warm up (5)", NULL),
        OPTION("precision", 0, "P", "number format of the convolutions: fp32 or bf16 (fp32)", "/precision"),
        OPTION("gemm", 0, "G", "matrix products of convolutions: auto, openblas or own (auto)", "/model/gemm"),
        OPTION("eval", 0, NULL, "measure evaluation: forward passes only", NULL),
    },
};
/* clang-format on */
