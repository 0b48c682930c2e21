/* trainctl predict: predicts a job on several numbers of nodes, or compares the presets. The
 * planner used by daemon and workers plans each; only efficiency, node-hours and the choice are
 * computed here. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/document.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "client/measure/speeds.h"
#include "client/views/table.h"
#include "common/json.h"
#include "common/job/job_check.h"
#include "common/dataset/job_data.h"
#include "common/job/job_document.h"
#include "common/number.h"
#include "common/plan/plan_build.h"
#include "common/plan/preset_times.h"
#include "common/plan/predict.h"
#include "common/problem.h"
#include "common/run/speed.h"
#include "common/text.h"
#include "common/xalloc.h"

#define POINTS_MAX    64
#define NODES_MAX     65536
#define STOPS_HELPING 0.5 /* share of the time that the additional nodes could save */
#define NODES_DEFAULT "1,2,4,8,16,32,64,128,256"
#define NODES_PRESETS "16" /* if presets are compared */

struct point {
    int64_t nodes, batch;
    struct plan_predicted predicted;
    struct plan_band node_hours;
    double efficiency;
    char *problem; /* why there is no plan; NULL: there is one */
};

struct question {
    struct job_spec *spec;
    struct plan_inputs inputs;
    struct plan_workers workers;
    struct plan_network network;
    double deadline, budget; /* seconds, node-hours; INFINITY: none */
    double node_watts;       /* 0: not given */
    int64_t images;          /* images per worker before they are divided among nodes */
    double threads_keep;     /* share of a worker's speed that its threads retain; 0: unknown */
    const char *to_target;   /* name of the option that requests the time to a target; NULL: none */
    double target;           /* top-1, 0 to 1 */
    bool stated_speed;
    struct point points[POINTS_MAX];
    int count;
    const struct point *enough; /* smallest number after which more nodes barely help; NULL: none */
    const struct point *fastest, *cheapest, *choice; /* NULL: none */
    bool certain; /* the choice meets the limits even at the worse end of its band */
};

static int predict_number_option(const struct cmd_args *args, const char *option, double minimum,
                                 double *value, struct error *e)
{
    const char *text = cmd_value(args, option);
    const char *end;

    if (!text)
        return 0;
    if (!number_read(text, &end, value) || *end || !(*value >= minimum && *value <= 1e9))
        return error_set(e, ERR_USAGE, "--%s must be a number from %g to 1e9, not \"%s\"", option,
                         minimum, text);
    return 0;
}

static int predict_parse_nodes(const char *text, struct question *q, struct error *e)
{
    do {
        const char *end;
        long long nodes;
        if (!cmd_whole(text, &end, &nodes) || (*end && *end != ',') || nodes < 1 ||
            nodes > NODES_MAX)
            return error_set(
                e, ERR_USAGE,
                "--nodes must be numbers from 1 to %d separated by commas, for example "
                "in 1,16,64, not \"%s\"",
                NODES_MAX, text);
        if (q->count == POINTS_MAX)
            return error_set(e, ERR_USAGE, "--nodes takes at most %d numbers", POINTS_MAX);
        q->points[q->count++].nodes = nodes;
        text = *end ? end + 1 : end;
    } while (*text);
    return 0;
}

static int predict_read_target(const struct cmd_args *args, struct question *q, struct error *e)
{
    double target = 100 * PREDICT_TARGET;

    if (predict_number_option(args, "target", 0, &target, e))
        return -(int)e->code;
    double share = target > 1 ? target / 100 : target;
    if (target > 100 || share == 0)
        return error_set(e, ERR_USAGE, "--target is a top-1 accuracy in percent, e.g. 75.9, not %g",
                         target);
    q->target = share;
    if (args->operand_count && (share < PREDICT_TARGET_LOW || share > PREDICT_TARGET_HIGH))
        return error_set(e, ERR_USAGE,
                         "--target %g: epochs by batch are published for 75.9 %% only, which "
                         "stands for targets from %g to %g %%",
                         target, 100 * PREDICT_TARGET_LOW, 100 * PREDICT_TARGET_HIGH);
    return 0;
}

static int predict_read_options(const struct cmd_args *args, struct question *q, struct error *e)
{
    const char *nodes = cmd_value(args, "nodes");

    if (!nodes)
        nodes = args->operand_count ? NODES_DEFAULT : NODES_PRESETS;
    if (predict_parse_nodes(nodes, q, e) || cmd_duration(args, "deadline", &q->deadline, e) ||
        predict_number_option(args, "budget", 0, &q->budget, e) ||
        predict_number_option(args, "node-watts", 0, &q->node_watts, e))
        return -(int)e->code;
    q->to_target = cmd_value(args, "target")     ? "--target"
                   : cmd_flag(args, "to-target") ? "--to-target"
                                                 : NULL;
    return predict_read_target(args, q, e);
}

static int predict_find_network(const struct cmd_args *args, const char *interface,
                                struct question *q, struct error *e)
{
    struct plan_network *n = &q->network;

    *n = plan_network_default;
    speed_network_find(interface, n);
    double hop_us = 1e6 * n->hop_seconds, gbit = 8e-9 * n->bytes_per_second;
    double jitter = 100 * n->jitter;
    if (predict_number_option(args, "hop-us", 0, &hop_us, e) ||
        predict_number_option(args, "link-gbit", 1e-3, &gbit, e) ||
        predict_number_option(args, "jitter", 0, &jitter, e))
        return -(int)e->code;
    n->hop_seconds = 1e-6 * hop_us;
    n->bytes_per_second = gbit / 8e-9;
    n->jitter = jitter / 100;
    return 0;
}

static int predict_find_speed(const struct cmd_args *args, struct question *q, struct error *e)
{
    double rate = 0;
    int status = predict_number_option(args, "node-speed", 1e-6, &rate, e);

    if (status)
        return status;
    q->inputs.network = &q->network;
    q->stated_speed = rate > 0;
    if (rate > 0)
        q->inputs.speed = (struct plan_speed){
            .image_seconds = (double)q->spec->cluster.workers_per_node / rate, .samples = 1};
    else
        q->inputs.speed = speeds_find(q->spec);
    if (!(q->inputs.speed.image_seconds > 0))
        q->inputs.speed = q->workers.speed;
    if (plan_speed_scatters(&q->inputs.speed))
        return error_set(e, ERR_INVALID,
                         "the measured speeds of this network vary too much for a prediction: "
                         "measure them with \"trainctl scale --weak --workers %lld FILE\" while "
                         "nothing else runs, or give the speed of a node with --node-speed R",
                         (long long)q->spec->cluster.workers_per_node);
    if (q->inputs.speed.image_seconds > 0)
        return 0;
    return error_set(e, ERR_NOT_FOUND,
                     "no speed was measured for this network, image size, precision and number of "
                     "threads: measure it on a machine of this kind with \"trainctl scale --weak "
                     "--workers %lld FILE\", or give the speed of a node with --node-speed R",
                     (long long)q->spec->cluster.workers_per_node);
}

static int predict_target_epochs(const struct question *q, const struct plan *plan,
                                 struct plan_inputs *in, struct error *e)
{
    if (!predict_table_applies(q->spec, plan->train_images))
        return error_set(e, ERR_INVALID,
                         "%s: epochs to a target are published for resnet50 with 1000 classes at "
                         "224x224 on ImageNet's images, not for this job",
                         q->to_target);
    if (!predict_epochs_to_target(plan->global_batch, &in->epochs))
        return error_set(e, ERR_NOT_FOUND,
                         "a global batch of %lld exceeds the largest for which epochs to the "
                         "target are published, 67840",
                         (long long)plan->global_batch);
    return 0;
}

static char *predict_point_problem(const struct question *q, const struct problems *problems)
{
    const struct job_spec *s = q->spec;
    int64_t batch = s->has_global_batch ? s->global_batch
                                        : s->cluster.nodes * s->cluster.workers_per_node *
                                              s->batch_per_worker * s->accumulate_steps;
    char of[FORMAT_BYTES], images[FORMAT_BYTES], key[PROBLEM_KEY_BYTES], text[512];

    if (!problems->count)
        snprintf(text, sizeof text, "the job cannot be planned");
    else if (batch > q->inputs.train_images)
        snprintf(text, sizeof text, "too few images: batch %s of %s",
                 format_count(of, sizeof of, batch),
                 format_count(images, sizeof images, q->inputs.train_images));
    else
        snprintf(text, sizeof text, "%s: %s", problem_key(problems->items[0].pointer, key),
                 problems->items[0].message);
    return xstrdup(text);
}

/* Plans and predicts a point, or stores why it has no plan; *e is set only if options are
 * invalid. */
static int predict_point(struct question *q, struct point *p, struct error *e)
{
    struct problems problems = {0};
    struct plan_inputs inputs = q->inputs;
    int status = 0;

    inputs.prices.node_watts = q->node_watts;
    q->spec->cluster.nodes = p->nodes;
    plan_inputs_share_out(q->spec, &inputs);
    job_batch_settle(q->spec, false, &problems);
    struct plan *plan = problems.count ? NULL : plan_make(q->spec, &inputs, &problems);
    if (plan && q->to_target && (status = predict_target_epochs(q, plan, &inputs, e)) == 0) {
        plan_destroy(plan);
        plan = plan_make(q->spec, &inputs, &problems);
    }
    if (status == -(int)ERR_NOT_FOUND) {
        p->batch = plan->global_batch;
        p->problem = xstrdup(e->text);
        status = 0;
    } else if (!status && plan) {
        p->batch = plan->global_batch;
        p->predicted = plan->predicted;
        const struct plan_band *t = &p->predicted.ttt_seconds;
        double hours = (double)p->nodes / 3600;
        p->node_hours = (struct plan_band){hours * t->value, hours * t->low, hours * t->high};
    } else if (!status) {
        p->problem = predict_point_problem(q, &problems);
    }
    plan_destroy(plan);
    problems_clear(&problems);
    return status;
}

static int predict_all(struct question *q, struct error *e)
{
    struct plan_band step;

    q->spec->cluster.nodes = 1;
    predict_step(q->spec, &q->inputs.speed, &q->network, &step);
    double alone = (double)(q->spec->cluster.workers_per_node * q->spec->batch_per_worker *
                            q->spec->accumulate_steps) /
                   step.value;
    for (int i = 0; i < q->count; i++) {
        struct point *p = &q->points[i];
        int status = predict_point(q, p, e);
        if (status)
            return status;
        p->efficiency = p->predicted.images_per_sec.value / (double)p->nodes / alone;
    }
    return 0;
}

static double predict_cost(const struct point *p)
{
    return p->node_hours.value;
}

static double predict_duration(const struct point *p)
{
    return p->predicted.ttt_seconds.value;
}

/* Returns the point with the smallest measure; limits: only among those that meet them. */
static const struct point *predict_least(const struct question *q,
                                         double measure(const struct point *), bool limits,
                                         bool surely)
{
    const struct point *best = NULL;

    for (int i = 0; i < q->count; i++) {
        const struct point *p = &q->points[i];
        double seconds = surely ? p->predicted.ttt_seconds.high : p->predicted.ttt_seconds.value;
        double hours = surely ? p->node_hours.high : p->node_hours.value;
        if (p->problem || (limits && !(seconds <= q->deadline && hours <= q->budget)))
            continue;
        if (!best || measure(p) < measure(best))
            best = p;
    }
    return best;
}

static const struct point *predict_enough(const struct question *q)
{
    for (int i = 0; i + 1 < q->count; i++) {
        const struct point *p = &q->points[i], *next = p + 1;
        if (p->problem || next->problem || next->nodes <= p->nodes)
            continue;
        double share = (double)(next->nodes - p->nodes) / (double)next->nodes;
        if (predict_duration(p) - predict_duration(next) <
            STOPS_HELPING * share * predict_duration(p))
            return p;
    }
    return NULL;
}

static void predict_choose(struct question *q)
{
    bool has_deadline = isfinite(q->deadline), has_budget = isfinite(q->budget);

    q->enough = predict_enough(q);
    q->fastest = predict_least(q, predict_duration, false, false);
    q->cheapest = predict_least(q, predict_cost, false, false);
    if (!has_deadline && !has_budget)
        return;
    q->choice = predict_least(q, has_deadline ? predict_cost : predict_duration, true, true);
    q->certain = q->choice != NULL;
    if (!q->choice)
        q->choice = predict_least(q, has_deadline ? predict_cost : predict_duration, true, false);
}

static json_t *predict_point_to_json(const struct question *q, const struct point *p)
{
    bool known = !p->problem;
    json_t *marks = json_array();

    if (p == q->fastest)
        json_array_append_new(marks, json_string("fastest"));
    if (p == q->cheapest)
        json_array_append_new(marks, json_string("cheapest"));
    if (p == q->choice)
        json_array_append_new(marks, json_string("choice"));
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "nodes",
                     (json_int_t)p->nodes, "global_batch",
                     p->batch > 0 ? json_integer(p->batch) : json_null(), "images_per_sec",
                     plan_band_to_json(known, &p->predicted.images_per_sec), "images_per_second",
                     plan_band_to_json(known, &p->predicted.images_per_sec), "efficiency",
                     known ? json_number(p->efficiency) : json_null(), "epochs",
                     plan_band_to_json(known, &p->predicted.epochs), "ttt_seconds",
                     plan_band_to_json(known, &p->predicted.ttt_seconds), "node_hours",
                     plan_band_to_json(known, &p->node_hours), "kwh",
                     plan_band_to_json(known && !isnan(p->predicted.kwh.value), &p->predicted.kwh),
                     "marks", marks, "problem", p->problem ? json_string(p->problem) : json_null());
}

static void predict_show_json(const struct question *q)
{
    const struct plan_speed *s = &q->inputs.speed;
    json_t *points = json_array();
    double keep = q->threads_keep;

    for (int i = 0; i < q->count; i++)
        json_array_append_new(points, predict_point_to_json(q, &q->points[i]));
    json_t *choice = q->choice ? json_pack("{s:I, s:b}", "nodes", (json_int_t)q->choice->nodes,
                                           "certain", q->certain)
                               : json_null();
    json_t *out = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:{s:o, s:o, s:o, s:I}, s:{s:o, s:o, s:o}}", "points", points,
        "enough_nodes", q->enough ? json_integer(q->enough->nodes) : json_null(), "workers",
        q->workers.workers ? json_pack("{s:I, s:I, s:s}", "workers_per_node",
                                       (json_int_t)q->workers.workers, "threads_per_worker",
                                       (json_int_t)q->workers.threads, "reason", q->workers.reason)
                           : json_null(),
        "choice", choice, "threads_keep", json_number_or_null(keep > 0 ? keep : NAN), "speed",
        "image_seconds", json_number(s->image_seconds), "update_seconds",
        json_number(s->update_seconds), "exchange_seconds", json_number(s->exchange_seconds),
        "runs", (json_int_t)s->samples, "network", "hop_seconds",
        json_number(q->network.hop_seconds), "bytes_per_second",
        json_number(q->network.bytes_per_second), "jitter", json_number(q->network.jitter));
    print_json(out);
    json_decref(out);
}

static const char *predict_number(char text[FORMAT_BYTES], double number, double small,
                                  const char *format)
{
    if (!(number < small))
        return format_count(text, FORMAT_BYTES, llround(number));
    snprintf(text, FORMAT_BYTES, format, number);
    return text;
}

static void predict_point_row(struct libscols_table *table, const struct question *q,
                              const struct point *p)
{
    struct libscols_line *line = table_line(table);
    char text[3 * FORMAT_BYTES + 128], low[FORMAT_BYTES], high[FORMAT_BYTES];
    const struct plan_predicted *m = &p->predicted;

    table_set(line, 0, format_count(text, sizeof text, p->nodes));
    table_set(line, 1, p->batch ? format_count(text, sizeof text, p->batch) : "-");
    if (p->problem) {
        table_set(line, 9, p->problem);
        return;
    }
    table_set(line, 2, predict_number(text, m->images_per_sec.value, 100, "%.1f"));
    table_setf(line, 3, "%.0f %%", 100 * p->efficiency);
    table_setf(line, 4, "%.3g", m->epochs.value);
    table_set(line, 5, format_duration(text, sizeof text, m->ttt_seconds.value));
    table_setf(line, 6, "%s to %s", format_duration(low, sizeof low, m->ttt_seconds.low),
               format_duration(high, sizeof high, m->ttt_seconds.high));
    table_set(line, 7, predict_number(text, p->node_hours.value, 10, "%.2g"));
    table_set(line, 8, format_number(text, sizeof text, m->kwh.value));
    const char *marks[] = {p == q->fastest ? "fastest" : NULL, p == q->cheapest ? "cheapest" : NULL,
                           p == q->choice ? "choice" : NULL,
                           q->to_target ? predict_epochs_doubt(p->batch) : NULL};
    *text = '\0';
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (marks[i])
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? ", " : "",
                     marks[i]);
    table_set(line, 9, text);
    if (p == q->choice)
        table_set_color(line, 9, "green");
}

static void predict_say_basis(const struct question *q)
{
    const struct job_spec *s = q->spec;
    double rate = q->stated_speed
                      ? (double)s->cluster.workers_per_node / q->inputs.speed.image_seconds
                      : plan_speed_rate(&q->inputs.speed);
    char text[FORMAT_BYTES];

    print_prose("%s at %lldx%lld, %lld worker%s per node; one node: %s, %s", s->model.arch,
                (long long)s->model.image_size, (long long)s->model.image_size,
                (long long)s->cluster.workers_per_node, plural(s->cluster.workers_per_node),
                format_rate(text, sizeof text, rate),
                q->stated_speed ? "as stated" : "as measured");
    if (q->workers.workers)
        print_wrapped(stdout, "", 2, q->workers.reason);
    double keep = q->threads_keep;
    if (keep > 0 && keep < 0.995 && s->cluster.threads_per_worker > 1)
        print_prose(
            "%lld threads per worker lose about %.0f %% of their speed to uneven shares of %lld "
            "image%s, which is in it",
            (long long)s->cluster.threads_per_worker, 100 * (1 - keep), (long long)q->images,
            plural(q->images));
    putchar('\n');
}

static void predict_say_choice(const struct question *q)
{
    char nodes[FORMAT_BYTES], text[FORMAT_BYTES];

    if (q->enough) {
        putchar('\n');
        print_prose("more than %s node%s hardly help%s: the next step saves less than half of "
                    "what it could",
                    format_count(nodes, sizeof nodes, q->enough->nodes), plural(q->enough->nodes),
                    q->to_target ? ", as larger batches need more epochs" : "");
    }
    if (!isfinite(q->deadline) && !isfinite(q->budget))
        return;
    putchar('\n');
    if (q->choice)
        print_prose(
            "choice: %s node%s with a global batch of %s%s",
            format_count(nodes, sizeof nodes, q->choice->nodes), plural(q->choice->nodes),
            format_count(text, sizeof text, q->choice->batch),
            q->certain
                ? ""
                : ", which is likely to meet the limit, but not at the worse end of its band");
    else
        puts("no candidate meets the deadline or the budget");
    if (!q->choice && q->fastest)
        printf("  the fastest (%s) takes %s\n",
               format_count(nodes, sizeof nodes, q->fastest->nodes),
               format_duration(text, sizeof text, predict_duration(q->fastest)));
    if (!q->choice && q->cheapest)
        printf("  the cheapest (%s) costs %s node-hours\n",
               format_count(nodes, sizeof nodes, q->cheapest->nodes),
               format_count(text, sizeof text, llround(predict_cost(q->cheapest))));
}

static void predict_show_table(const struct question *q)
{
    static const char *const headings[] = {"NODES",  "BATCH", "IMAGES/S",   "EFFICIENCY",
                                           "EPOCHS", "TIME",  "LOW - HIGH", "NODE-HOURS",
                                           "KWH",    "REMARK"};
    bool watts = q->node_watts > 0;
    struct libscols_table *table = table_create(1, "");

    for (size_t i = 0; i < sizeof headings / sizeof headings[0]; i++)
        table_column(table, headings[i],
                     i == 6             ? table_if_wide()
                     : i == 8 && !watts ? SCOLS_FL_HIDDEN
                     : i == 9           ? TABLE_WRAP
                     : i == 3 || i == 4 ? TABLE_RIGHT | TABLE_SPARE
                                        : TABLE_RIGHT);
    for (int i = 0; i < q->count; i++)
        predict_point_row(table, q, &q->points[i]);
    predict_say_basis(q);
    table_finish(table);
    predict_say_choice(q);
}

static int predict_share_out_node(const struct cmd_args *args, struct question *q, struct error *e)
{
    struct problems problems = {0};
    int status = speeds_choose_workers(q->spec, args, &q->workers, &q->inputs, &problems, e);
    int64_t workers = q->spec->cluster.workers_per_node, cores = q->inputs.node_cores;

    if (!status && problems.count)
        status = error_set(e, ERR_INVALID, "%s: %s", problems.items[0].pointer,
                           problems.items[0].message);
    if (!status && q->spec->cluster.threads_per_worker == 0 && cores > 0)
        q->spec->cluster.threads_per_worker = cores > workers ? cores / workers : 1;
    problems_clear(&problems);
    return status;
}

static int predict_answer(const struct cmd_args *args, struct question *q, struct error *e)
{
    json_t *remarks = json_array();
    int status = predict_find_network(args, q->spec->cluster.interface, q, e);

    if (!status && q->spec->mode != JOB_MODE_TRAIN)
        status = error_set(e, ERR_INVALID, "the job's mode is eval: there is nothing to train");
    if (!status)
        status = document_state_images(q->spec, args, e);
    if (!status)
        status = document_count(q->spec, &q->inputs, remarks, e);
    if (!status)
        status = predict_share_out_node(args, q, e);
    if (!status)
        status = predict_find_speed(args, q, e);
    q->images = q->spec->batch_per_worker;
    q->threads_keep = plan_threads_keep(q->spec, q->spec->cluster.threads_per_worker, q->images);
    if (!status)
        status = predict_all(q, e);
    json_decref(remarks);
    return status;
}

static struct plan_speed predict_measured_speed(const struct job_spec *spec, void *context)
{
    (void)context;
    return speeds_find(spec);
}

static double predict_member(const json_t *entry, const char *name)
{
    return json_get_number(json_object_get(entry, name), "value", NAN);
}

static void predict_preset_row(struct libscols_table *table, json_int_t nodes, const json_t *entry)
{
    struct libscols_line *line = table_line(table);
    char text[FORMAT_BYTES];

    table_set(line, 0, format_count(text, sizeof text, nodes));
    table_set(line, 1, json_get_text(entry, "preset", ""));
    table_setf(line, 2, "%.4g %%", 100 * json_get_number(entry, "top1", NAN));
    table_set(line, 10, json_get_text(entry, "problem", ""));
    if (!json_object_get(entry, "epochs"))
        return;
    table_set(line, 3, format_count(text, sizeof text, json_get_integer(entry, "global_batch", 0)));
    table_setf(line, 4, "%.3g", json_get_number(entry, "epochs", NAN));
    table_setf(line, 5, "%.3g", json_get_number(entry, "epochs_at_224", NAN));
    if (isnan(predict_member(entry, "ttt_seconds")))
        return;
    table_set(line, 6, predict_number(text, predict_member(entry, "images_per_sec"), 100, "%.1f"));
    table_set(line, 7, format_duration(text, sizeof text, predict_member(entry, "ttt_seconds")));
    table_set(line, 8, predict_number(text, predict_member(entry, "node_hours"), 10, "%.2g"));
    table_set(line, 9, format_number(text, sizeof text, predict_member(entry, "kwh")));
}

static void predict_show_presets(const struct question *q, const json_t *all)
{
    struct libscols_table *table = table_create(
        1, "NODES>?,PRESET~,TOP-1>,BATCH>?,EPOCHS>?,AT 224>?,IMAGES/S>?,TIME>,NODE-HOURS>?,KWH>?,"
           "REMARK|");
    const json_t *one, *entry;
    size_t i, k;

    print_prose("ImageNet to %.4g %% top-1 by each published recipe with its own global batch; AT "
                "224: its arithmetic in epochs of 224x224 pixels",
                100 * q->target);
    putchar('\n');
    json_array_foreach (all, i, one)
        json_array_foreach (json_object_get(one, "presets"), k, entry)
            predict_preset_row(table, json_get_integer(one, "nodes", 0), entry);
    table_finish(table);
    putchar('\n');
    json_array_foreach (json_object_get(json_array_get(all, 0), "presets"), k, entry)
        if (json_object_get(entry, "epochs"))
            print_prose("%s: %s", json_get_text(entry, "preset", ""),
                        json_get_text(entry, "source", ""));
}

/* Compares the presets on each number of nodes. */
static int predict_presets(const struct cmd_args *args, struct question *q, struct error *e)
{
    static const char *const of_files[] = {"deadline", "budget", "train-images", "eval-images",
                                           "node-cores"};
    json_t *changes = json_object(), *all = json_array();
    struct preset_times times = {.target = q->target,
                                 .changes = changes,
                                 .network = &q->network,
                                 .prices.node_watts = q->node_watts,
                                 .speed = predict_measured_speed};
    int status = q->to_target ? predict_find_network(args, NULL, q, e)
                              : error_set(e, ERR_USAGE,
                                          "give a FILE, or an accuracy to compare the presets by, "
                                          "for example --target 75.9");

    for (size_t i = 0; i < sizeof of_files / sizeof of_files[0] && !status; i++)
        if (cmd_value(args, of_files[i]))
            status = error_set(e, ERR_USAGE, "--%s needs a FILE", of_files[i]);
    if (!status)
        status = predict_number_option(args, "node-speed", 1e-6, &times.node_speed, e);
    if (!status)
        status = document_set_all(changes, args, e);
    for (int i = 0; i < q->count && !status; i++) {
        times.nodes = q->points[i].nodes;
        json_array_append_new(all, json_pack("{s:I, s:o}", "nodes", (json_int_t)times.nodes,
                                             "presets", preset_times(&times)));
    }
    json_t *out = json_pack("{s:o, s:o}", "target", json_number(q->target), "nodes", all);
    if (!status)
        client.json ? print_json(out) : predict_show_presets(q, all);
    json_decref(out);
    json_decref(changes);
    return status;
}

static int cmd_predict(const struct cmd_args *args)
{
    struct error e;
    struct question *q = xcalloc(1, sizeof *q);
    int code;

    q->deadline = q->budget = INFINITY;
    if (predict_read_options(args, q, &e)) {
        code = cmd_fail(&e);
    } else if (args->operand_count == 0) {
        code = predict_presets(args, q, &e) ? cmd_fail(&e) : 0;
    } else if ((code = document_open(args->operands[0], args, &q->spec)) == 0) {
        if (predict_answer(args, q, &e)) {
            code = cmd_fail(&e);
        } else {
            predict_choose(q);
            client.json ? predict_show_json(q) : predict_show_table(q);
        }
    }
    for (int i = 0; i < q->count; i++)
        free(q->points[i].problem);
    job_spec_destroy(q->spec);
    free(q);
    return code;
}

/* clang-format off */
const struct cmd cmd_predict_entry = {
    .name = "predict", .synopsis = "[--nodes N,N...] [--deadline T] [--budget H] [--target P] [--set KEY=VALUE...] [FILE|-]",
    .help = "predict throughput, time to train and node-hours by number of nodes, or compare the presets", .example = "trainctl predict --nodes 1,2,4 --deadline 2h job.json",
    .run = cmd_predict, .completion = "file", .operands = {0, 1},
    .options = {
        OPTION("set", 0, "KEY=VALUE", "change a key of the document first, e.g. batch_per_worker=32", "key"),
        OPTION("nodes", 0, "N,N...", "node counts (1,2,4,8,16,32,64,128,256; without FILE 16)", NULL),
        OPTION("deadline", 0, "T", "choose the cheapest node count that finishes within T: 2h, 90min, 3d", NULL),
        OPTION("budget", 0, "H", "choose the fastest node count that costs at most H node-hours", NULL),
        OPTION("target", 0, "P", "time to P % top-1, with the epochs that ResNet-50 needs to reach 75.9 % at each global batch; without FILE of each preset", NULL),
        OPTION("to-target", 0, NULL, "the same as --target 75.9", NULL),
        OPTION("node-speed", 0, "R", "speed of one node in images/s, instead of the speed measured here; without FILE that of ResNet-50 at 224 pixels", NULL),
        OPTION("node-watts", 0, "W", "power of one node under load in watts, to predict the energy", NULL),
        OPTION("hop-us", 0, "U", "time of a round of messages between nodes, in microseconds (as measured, or 20)", NULL),
        OPTION("link-gbit", 0, "G", "bandwidth of a node's link, as a sum reaches it, in gigabits/s (as measured, or 60)", NULL),
        OPTION("jitter", 0, "P", "standard deviation of a node's step time, in percent (2)", NULL),
        OPTION("train-images", 0, "N", "number of training images, instead of counting them", NULL),
        OPTION("eval-images", 0, "N", "number of evaluation images", NULL),
        OPTION("node-cores", 0, "N", "cores per node, for cluster.workers_per_node 0 or threads_per_worker 0 (those of this machine)", NULL),
    },
};
/* clang-format on */
