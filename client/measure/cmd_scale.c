/* trainctl scale: measures a job with several numbers of workers, or on several machines, and
 * compares the results with what `trainctl predict` derives from the first measurement. Across
 * machines it also measures the network. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/document.h"
#include "client/measure/bench.h"
#include "client/measure/speeds.h"
#include "client/views/format.h"
#include "client/views/plot.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/job/job_document.h"
#include "common/json.h"
#include "common/run/speed.h"
#include "common/text.h"
#include "common/xalloc.h"
#include "launch/launch.h"

#define POINTS_MAX    32
#define STEPS_DEFAULT "5"
#define PLOT_ROWS     14
#define PLOT_COLUMNS  100
#define BUSY          0.5

enum way { STRONG, WEAK, WAYS };
static const char *const way_names[WAYS] = {"strong", "weak"};

struct point {
    int64_t workers, batch;
    double images_per_sec, speedup, efficiency;
    struct plan_band predicted;
};

struct scaling {
    struct job_spec *spec;
    int64_t global_batch;
    int64_t batch;
    int64_t workers[POINTS_MAX];
    int count;
    int64_t per_node; /* workers per machine if points are machines; 0: one machine */
    struct plan_network network;
    double load;
    bool ways[WAYS];
    struct point points[WAYS][POINTS_MAX];
};

static int scale_parse_workers(const struct cmd_args *args, struct scaling *s, struct error *e)
{
    const char *what = cmd_value(args, "nodes") ? "nodes" : "workers";
    const char *text = cmd_value(args, what);

    if (!text)
        return error_set(e, ERR_USAGE, "missing worker counts, e.g. --workers 1,2,4");
    do {
        const char *end;
        long long workers;
        if (!cmd_whole(text, &end, &workers) || (*end && *end != ',') || workers < 1 ||
            workers > 1024 || s->count == POINTS_MAX)
            return error_set(e, ERR_USAGE,
                             "--%s must be at most %d numbers from 1 to 1024 separated "
                             "by commas, e.g. 1,2,4, not \"%s\"",
                             what, POINTS_MAX, text);
        s->workers[s->count++] = workers;
        text = *end ? end + 1 : end;
    } while (*text);
    return 0;
}

static int scale_check_slots(const struct scaling *s, struct error *e)
{
    int64_t cores = launch_node_slots(s->spec->cluster.smt);
    int64_t threads = s->spec->cluster.threads_per_worker;
    int64_t max = cores / (threads > 0 ? threads : 1);

    for (int i = 0; i < s->count; i++)
        if (s->workers[i] > max)
            return error_set(
                e, ERR_INVALID,
                "--workers: %lld worker%s of %lld thread%s need more than the %lld slot%s "
                "of this machine: use at most %lld, or --oversubscribe",
                (long long)s->workers[i], plural(s->workers[i]),
                (long long)(threads > 0 ? threads : 1), plural(threads > 0 ? threads : 1),
                (long long)cores, plural(cores), (long long)max);
    return 0;
}

static int scale_check_nodes(struct scaling *s, struct error *e)
{
    int64_t max = job_spec_names_hosts(s->spec) ? (int64_t)s->spec->cluster.host_count : 0;

    if (s->workers[0] != 1)
        return error_set(e, ERR_USAGE,
                         "--nodes must begin with 1, from which the others are predicted");
    for (int i = 0; i < s->count; i++)
        if (s->workers[i] > max)
            return error_set(e, ERR_INVALID,
                             "--nodes: the document names %lld host%s in cluster.hosts, not %lld",
                             (long long)max, plural(max), (long long)s->workers[i]);
    s->per_node = s->spec->cluster.workers_per_node;
    for (int i = 0; i < s->count; i++)
        s->workers[i] *= s->per_node;
    return 0;
}

static int scale_check_batch(const struct scaling *s, struct error *e)
{
    for (int i = 0; s->ways[STRONG] && i < s->count; i++)
        if (s->global_batch % s->workers[i])
            return error_set(e, ERR_INVALID,
                             "strong scaling divides the document's global batch of %lld, "
                             "which %lld workers cannot share evenly: change batch_per_worker, or "
                             "measure --weak",
                             (long long)s->global_batch, (long long)s->workers[i]);
    return 0;
}

static void scale_make_short(struct scaling *s, long steps)
{
    struct job_spec *spec = s->spec;

    s->batch = spec->batch_per_worker * spec->accumulate_steps;
    s->global_batch = s->batch * job_spec_world_size(spec);
    free(spec->data.train);
    free(spec->data.eval);
    free(spec->model.init);
    spec->data.train = xstrdup("synthetic");
    spec->data.eval = spec->model.init = NULL;
    spec->data.has_train_images = true;
    spec->data.locality = JOB_LOCALITY_GLOBAL;
    spec->accumulate_steps = 1;
    spec->has_global_batch = false;
    spec->cluster.nodes = 1;
    spec->cluster.launcher = JOB_LAUNCHER_LOCAL;
    spec->has_steps = true;
    spec->steps = steps + 1;
    spec->checkpoint.disable = true;
    spec->profile.has_steps = false;
    spec->eval.has_target_top1 = spec->eval.stop_at_target = spec->eval.predictions = false;
    spec->lr.warmup_epochs = 0; /* must not diverge on random labels */
    spec->lr.scaling = JOB_SCALING_NONE;
    spec->lr.base = 0.001;
    spec->lr.has_start = false;
    spec->data.mixup = 0;
}

static void scale_take_workers(struct job_spec *spec, const struct scaling *s, int64_t workers,
                               int64_t batch)
{
    spec->cluster.workers_per_node = s->per_node ? s->per_node : workers;
    spec->cluster.nodes = workers / spec->cluster.workers_per_node;
    spec->batch_per_worker = batch;
    spec->data.train_images = batch * workers * spec->steps;
}

/* Measures runs that sum after backward, in small and in large buckets, which differ only in the
 * number of rounds. Discards a result that is not a valid constant. */
static int scale_measure_network(struct scaling *s, double in_memory, struct error *e)
{
    static const int64_t buckets[] = {256 << 10, 8 << 20};
    struct plan_network hop = plan_network_default;
    double seconds[2], hops[2];
    struct predict_exchange x;
    struct bench bench;
    struct job_spec with = *s->spec;

    scale_take_workers(&with, s, s->workers[s->count - 1], s->batch);
    with.comm.overlap = false;
    hop.hop_seconds = 1;
    hop.bytes_per_second = INFINITY;
    for (int i = 0; i < 2; i++) {
        with.comm.fusion_bytes = buckets[i];
        if (bench_run(&with, &bench, e))
            return error_prefix(e, "the network of %lld nodes", (long long)with.cluster.nodes);
        x = predict_exchange(&with, &hop, 0);
        hops[i] = x.seconds;
        seconds[i] = bench.phase_ms[BENCH_COMM] / 1e3 - in_memory - x.add_seconds;
    }
    hop.hop_seconds = (seconds[0] - seconds[1]) / (hops[0] - hops[1]);
    if (!isfinite(hop.hop_seconds) || hop.hop_seconds <= 0)
        hop.hop_seconds = plan_network_default.hop_seconds;
    hop.bytes_per_second = x.bytes / (seconds[1] - hops[1] * hop.hop_seconds);
    if (!(hop.bytes_per_second > 0))
        return 0;
    s->network = hop;
    return speed_network_keep(with.cluster.interface, &hop, e);
}

static int scale_run_point(struct scaling *s, enum way way, int i, struct plan_speed *first,
                           struct error *e)
{
    struct point *p = &s->points[way][i], *base = &s->points[way][0];
    struct job_spec *spec = s->spec;
    struct plan_band step;
    struct bench bench;

    p->workers = s->workers[i];
    p->batch = way == STRONG ? s->global_batch / p->workers : s->batch;
    scale_take_workers(spec, s, p->workers, p->batch);
    int status = bench_run(spec, &bench, e);
    if (status)
        return error_prefix(e, "%lld workers", (long long)p->workers);
    if (!s->per_node)
        speeds_keep(spec, &bench);
    p->images_per_sec = bench.images_per_sec;
    p->speedup = p->images_per_sec / base->images_per_sec;
    p->efficiency = p->speedup * (double)base->workers / (double)p->workers;
    if (i == 0) {
        struct plan_sample sample = speeds_sample(spec, &bench);
        *first = plan_speed_of(&sample, 1, 0, 0);
        if (s->per_node && scale_measure_network(s, first->exchange_seconds, e))
            return -(int)e->code;
    }
    if (predict_step(spec, first, &s->network, &step)) {
        double images = (double)(p->batch * p->workers);
        p->predicted = (struct plan_band){images / step.value, images / step.high, //
                                          images / step.low};
    }
    return 0;
}

static int scale_run_all(struct scaling *s, struct error *e)
{
    struct plan_speed first;
    bool shows = isatty(STDERR_FILENO);
    int status = 0;

    s->network = plan_network_default;
    if (s->spec->cluster.threads_per_worker == 0)
        s->spec->cluster.threads_per_worker = 1;
    if (getloadavg(&s->load, 1) < 1)
        s->load = 0;
    for (int way = 0; way < WAYS; way++)
        for (int i = 0; s->ways[way] && i < s->count && !status; i++) {
            if (shows)
                fprintf(stderr, "\r\033[Kmeasuring %s scaling with %lld worker%s ...",
                        way_names[way], (long long)s->workers[i], plural(s->workers[i]));
            status = scale_run_point(s, (enum way)way, i, &first, e);
        }
    if (shows)
        fputs("\r\033[K", stderr);
    return status;
}

static json_t *scale_points_to_json(const struct scaling *s, enum way way)
{
    json_t *out = json_array();

    for (int i = 0; i < s->count; i++) {
        const struct point *p = &s->points[way][i];
        json_array_append_new(
            out, json_pack("{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "workers",
                           (json_int_t)p->workers, "batch_per_worker", (json_int_t)p->batch,
                           "global_batch", (json_int_t)(p->batch * p->workers), "images_per_sec",
                           json_number(p->images_per_sec), "speedup", json_number(p->speedup),
                           "efficiency", json_number(p->efficiency), "predicted",
                           plan_band_to_json(true, &p->predicted), "error",
                           json_number(p->predicted.value / p->images_per_sec - 1)));
    }
    return out;
}

static void scale_show_json(const struct scaling *s)
{
    json_t *out = json_pack(
        "{s:o, s:o}", "load_before", json_number(s->load), "network",
        s->per_node ? json_pack("{s:o, s:o}", "hop_seconds", json_number(s->network.hop_seconds),
                                "bytes_per_second", json_number(s->network.bytes_per_second))
                    : json_null());

    for (int way = 0; way < WAYS; way++)
        json_object_set_new(out, way_names[way],
                            s->ways[way] ? scale_points_to_json(s, (enum way)way) : json_null());
    print_json(out);
    json_decref(out);
}

static void scale_show_table(const struct scaling *s, enum way way)
{
    struct libscols_table *table =
        table_create(1, "WORKERS>,BATCH>,IMAGES/S>,SPEEDUP>,EFFICIENCY>,PREDICTED>,ERROR>");

    for (int i = 0; i < s->count; i++) {
        const struct point *p = &s->points[way][i];
        struct libscols_line *line = table_line(table);
        char text[FORMAT_BYTES];
        table_set(line, 0, format_count(text, sizeof text, p->workers));
        table_set(line, 1, format_count(text, sizeof text, p->batch * p->workers));
        table_set(line, 2, format_number(text, sizeof text, p->images_per_sec));
        table_set(line, 3, format_number(text, sizeof text, p->speedup));
        table_set(line, 4, format_percent(text, sizeof text, p->efficiency));
        if (i == 0) {
            table_set(line, 5, "-");
            table_set(line, 6, "-");
            continue;
        }
        table_set(line, 5, format_number(text, sizeof text, p->predicted.value));
        table_setf(line, 6, "%+.1f %%", 100 * (p->predicted.value / p->images_per_sec - 1));
    }
    printf("%s scaling, %s\n", way_names[way],
           way == STRONG ? "constant global batch" : "constant batch per worker");
    table_finish(table);
}

static void scale_show_tables(const struct scaling *s)
{
    double cores = (double)launch_node_slots(false);

    for (int way = 0; way < WAYS; way++) {
        if (way == WEAK && s->ways[STRONG] && s->ways[WEAK])
            putchar('\n');
        if (s->ways[way])
            scale_show_table(s, (enum way)way);
    }
    if (s->per_node)
        printf(
            "\nbetween the nodes: a round of messages takes %.3g us, a sum reaches %.3g Gbit/s\n",
            1e6 * s->network.hop_seconds, 8e-9 * s->network.bytes_per_second);
    if (s->load > BUSY * cores)
        printf("\nOther processes kept this machine busy (a load of %.1f on %.0f cores before the "
               "first run): treat these figures with caution.\n",
               s->load, cores);
}

static void scale_print_plot(const char *title, const struct plot_series *series, size_t count,
                             int axes)
{
    int columns = terminal_columns() < PLOT_COLUMNS ? terminal_columns() : PLOT_COLUMNS;
    struct plot *plot =
        plot_create_series(series, count, axes, columns, PLOT_ROWS, terminal_utf8());
    const char *line;

    printf("\n%s\n", title);
    for (int i = 0; plot && (line = plot_line(plot, i)); i++)
        puts(line);
    plot_destroy(plot);
}

static void scale_show_plots(const struct scaling *s)
{
    double workers[POINTS_MAX], ideal[POINTS_MAX], one[POINTS_MAX], rate[WAYS][POINTS_MAX],
        share[WAYS][POINTS_MAX], best = 0;
    struct plot_series rates[WAYS + 1], shares[WAYS + 1];
    size_t count = (size_t)s->count, lines = 1;

    for (int way = 0; way < WAYS; way++)
        if (s->ways[way])
            best =
                s->points[way][0].images_per_sec > best ? s->points[way][0].images_per_sec : best;
    for (size_t i = 0; i < count; i++) {
        workers[i] = (double)s->workers[i];
        ideal[i] = best * workers[i] / workers[0];
        one[i] = 100;
    }
    rates[0] = (struct plot_series){
        {workers, ideal, count},
        '\0'
    };
    shares[0] = (struct plot_series){
        {workers, one, count},
        '\0'
    };
    for (int way = 0; way < WAYS; way++) {
        if (!s->ways[way])
            continue;
        for (size_t i = 0; i < count; i++) {
            rate[way][i] = s->points[way][i].images_per_sec;
            share[way][i] = 100 * s->points[way][i].efficiency;
        }
        char mark = way == STRONG ? 's' : 'w';
        rates[lines] = (struct plot_series){
            {workers, rate[way], count},
            mark
        };
        shares[lines++] = (struct plot_series){
            {workers, share[way], count},
            mark
        };
    }
    scale_print_plot("images/s by workers, log axes", rates, lines, PLOT_LOG_X | PLOT_LOG_Y);
    scale_print_plot("efficiency in % by workers", shares, lines, PLOT_LOG_X);
    if (s->ways[STRONG])
        printf("s  strong, a global batch of %lld images\n", (long long)s->global_batch);
    if (s->ways[WEAK])
        printf("w  weak, %lld images per worker\n", (long long)s->batch);
    puts("   line without letters: the ideal");
}

static int scale_measure(const struct cmd_args *args, struct scaling *s, struct error *e)
{
    const char *text = cmd_value(args, "steps");
    long steps;
    int status = cmd_number(text ? text : STEPS_DEFAULT, "steps", 1, 100000, &steps, e);

    if (!status && s->spec->mode != JOB_MODE_TRAIN)
        status = error_set(e, ERR_INVALID, "the job's mode is eval: there is nothing to train");
    if (!status) {
        status = cmd_value(args, "nodes") ? scale_check_nodes(s, e) : 0;
        scale_make_short(s, steps);
    }
    if (!status)
        status = scale_check_batch(s, e);
    if (!status && !s->per_node && !cmd_flag(args, "oversubscribe"))
        status = scale_check_slots(s, e);
    return status ? status : scale_run_all(s, e);
}

static int cmd_scale(const struct cmd_args *args)
{
    struct scaling s = {0};
    struct error e;
    int code;

    s.ways[STRONG] = cmd_flag(args, "strong") || !cmd_flag(args, "weak");
    s.ways[WEAK] = cmd_flag(args, "weak") || !cmd_flag(args, "strong");
    if (scale_parse_workers(args, &s, &e)) {
        code = cmd_fail(&e);
    } else if ((code = document_open(args->operands[0], args, &s.spec)) == 0) {
        if (job_spec_leaves_workers(s.spec))
            code = cmd_usage(args->cmd,
                             "cluster.workers_per_node is 0, so the global batch is unknown: "
                             "add --set cluster.workers_per_node=N");
        else if (scale_measure(args, &s, &e))
            code = cmd_fail(&e);
        else if (client.json)
            scale_show_json(&s);
        else
            scale_show_tables(&s);
        if (!code && !client.json && cmd_flag(args, "plot"))
            scale_show_plots(&s);
    }
    job_spec_destroy(s.spec);
    return code;
}

/* clang-format off */
const struct cmd cmd_scale_entry = {
    .name = "scale", .synopsis = "--workers N,N... | --nodes 1,N... [--strong|--weak] [--steps N] [--set KEY=VALUE...] FILE|-",
    .help = "measure how a job scales on this machine or across machines", .example = "trainctl scale --workers 1,2 job.json",
    .run = cmd_scale, .completion = "file", .operands = {1, 1},
    .options = {
        OPTION("set", 0, "KEY=VALUE", "change a key of the document first, e.g. batch_per_worker=32", "key"),
        OPTION("workers", 0, "N,N...", "worker counts, e.g. 1,2,4", NULL),
        OPTION("nodes", 0, "1,N...", "counts of the machines in cluster.hosts, e.g. 1,2,4: measures the network between them too", NULL),
        OPTION("strong", 0, NULL, "only strong scaling: the same global batch", NULL),
        OPTION("weak", 0, NULL, "only weak scaling: the same batch per worker", NULL),
        OPTION("steps", 0, "N", "measured steps, after one to warm up (5)", NULL),
        OPTION("plot", 0, NULL, "also draw curves in the terminal, on log axes", NULL),
        OPTION("oversubscribe", 0, NULL, "allow more workers than slots", NULL),
    },
};
/* clang-format on */
