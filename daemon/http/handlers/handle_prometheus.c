/* GET /metrics in the Prometheus text format 0.0.4. */
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/xalloc.h"
#include "config.h"
#include "daemon/http/handlers/handle_usage.h"
#include "daemon/http/handlers/job_json.h"
#include "daemon/http/routes.h"
#include "daemon/http/stats.h"
#include "daemon/http/stream/stream.h"
#include "daemon/job/job_estimate.h"
#include "daemon/launch/failure_rules.h"
#include "daemon/node/node.h"
#include "daemon/store/ingest.h"

int handle_failures(const struct request *q, struct reply *r, struct error *e)
{
    int64_t unlabelled;
    json_t *rules = job_failure_rules(q->app->jobs, &unlabelled);

    return reply_json(
        r, 200, json_pack("{s:o, s:I}", "rules", rules, "unlabelled", (json_int_t)unlabelled), e);
}

/* Skips a label that an earlier rule has too. Labels need no escaping. */
static bool prometheus_label_is_printed(const json_t *rules, size_t before, const char *label)
{
    for (size_t i = 0; i < before; i++) {
        const json_t *rule = json_array_get(rules, i);
        if (strcmp(json_string_value(json_object_get(rule, "label")), label) == 0)
            return true;
    }
    return false;
}

static void prometheus_print_failures(const struct request *q, FILE *out)
{
    int64_t unlabelled;
    json_t *rules = job_failure_rules(q->app->jobs, &unlabelled);
    const json_t *rule;
    size_t i;

    fputs("# HELP traind_failures_total Failed attempts since the start of the daemon, by the "
          "label of the failure rules.\n# TYPE traind_failures_total counter\n",
          out);
    json_array_foreach (rules, i, rule) {
        const char *label = json_string_value(json_object_get(rule, "label"));
        if (!prometheus_label_is_printed(rules, i, label))
            fprintf(out, "traind_failures_total{label=\"%s\"} %lld\n", label,
                    (long long)json_integer_value(json_object_get(rule, "count")));
    }
    fprintf(out, "traind_failures_total{label=\"" FAILURE_NO_LABEL "\"} %lld\n",
            (long long)unlabelled);
    json_decref(rules);
}

static void prometheus_head(FILE *out, const char *name, const char *help, const char *type)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void prometheus_gauge(FILE *out, const char *name, const char *help, double value)
{
    prometheus_head(out, name, help, "gauge");
    fprintf(out, "%s %.10g\n", name, value);
}

static int prometheus_print_states(const struct request *q, FILE *out, struct error *e)
{
    fputs("# HELP traind_jobs Jobs by state.\n# TYPE traind_jobs gauge\n", out);
    for (int state = 0; state < JOB_STATE_COUNT; state++) {
        int64_t count;
        if (store_job_count(q->app->store, 1u << state, &count, e))
            return -(int)e->code;
        fprintf(out, "traind_jobs{state=\"%s\"} %lld\n", job_state_name((enum job_state)state),
                (long long)count);
    }
    return 0;
}

static void prometheus_print_slots(const struct request *q, FILE *out)
{
    struct job_slots slots;

    job_manager_slots(q->app->jobs, &slots);
    prometheus_gauge(out, "traind_slots", "Slots available to jobs.", (double)slots.total);
    prometheus_gauge(out, "traind_slots_used", "Slots in use by jobs.", (double)slots.used);
    prometheus_gauge(out, "traind_event_streams", "Open live event streams.",
                     (double)streams_count(q->app->streams));
}

static double prometheus_lag_bytes(const struct request *q, const struct store_job *job)
{
    char path[PATH_MAX];
    struct stat st;
    struct error e;
    int64_t read;

    snprintf(path, sizeof path, "%s/attempt-%lld/events.jsonl", job->run_dir,
             (long long)job->attempt);
    if (stat(path, &st) || store_ingest_position(q->app->store, job->id, job->attempt, &read, &e))
        return NAN;
    return fmax(0, (double)st.st_size - (double)read);
}

static const struct {
    const char *name, *help, *type;
} job_values[] = {
    {"traind_job_step",                "Steps done by a running job.",                                 "gauge"  },
    {"traind_job_epoch",               "Epochs done by a running job.",                                "gauge"  },
    {"traind_job_loss",                "Training loss of a running job's newest step.",                "gauge"  },
    {"traind_job_learning_rate",       "Learning rate of a running job's newest step.",                "gauge"  },
    {"traind_job_images_per_second",   "Images per second of a running job.",                          "gauge"  },
    {"traind_ingest_lag_bytes",        "Bytes of a running job's events that have not been read yet.",
     "gauge"                                                                                                    },
    {"traind_job_energy_joules_total", "Energy of all attempts of a running job.",                     "counter"},
    {"traind_job_node_seconds_total",  "Node-seconds of all attempts of a running job.",               "counter"},
};
#define JOB_VALUES (sizeof job_values / sizeof job_values[0])

static int prometheus_print_running(const struct request *q, FILE *out, struct error *e)
{
    struct store_job_filter filter = {.states = 1u << JOB_STARTING | 1u << JOB_RUNNING |
                                                1u << JOB_EVALUATING,
                                      .order = STORE_NEWEST_FIRST};
    struct store_jobs jobs = {0};

    if (store_job_list(q->app->store, &filter, &jobs, e))
        return -(int)e->code;
    double(*values)[JOB_VALUES] = xcalloc(jobs.count + 1, sizeof *values);
    for (size_t i = 0; i < jobs.count; i++) {
        const struct store_job *job = &jobs.items[i];
        struct job_cost cost = job_cost_of(job, &q->config->prices, clock_now());
        const double of_job[JOB_VALUES] = {(double)job->step,   job->epoch,
                                           job->loss,           job->lr,
                                           job->images_per_sec, prometheus_lag_bytes(q, job),
                                           cost.joules,         cost.node_hours * 3600};
        memcpy(values[i], of_job, sizeof of_job);
    }
    for (size_t which = 0; which < JOB_VALUES; which++) {
        prometheus_head(out, job_values[which].name, job_values[which].help,
                        job_values[which].type);
        for (size_t i = 0; i < jobs.count; i++)
            if (!isnan(values[i][which]))
                fprintf(out, "%s{job=\"%lld\"} %.10g\n", job_values[which].name,
                        (long long)jobs.items[i].id, values[i][which]);
    }
    free(values);
    store_jobs_clear(&jobs);
    return 0;
}

/* Names need no escaping: node_name_is_valid(). */
static void prometheus_print_node_value(FILE *out, const struct store_nodes *nodes,
                                        const char *name, const char *help, size_t offset,
                                        double factor)
{
    prometheus_head(out, name, help, "gauge");
    for (size_t i = 0; i < nodes->count; i++) {
        double value = *(const double *)((const char *)&nodes->items[i] + offset) * factor;
        if (!isnan(value))
            fprintf(out, "%s{node=\"%s\"} %.14g\n", name, nodes->items[i].name, value);
    }
}

static int prometheus_print_nodes(const struct request *q, FILE *out, struct error *e)
{
    struct store_nodes nodes;
    char reason[NODE_REASON_BYTES];

    if (store_node_list(q->app->store, "", -1, &nodes, e))
        return -(int)e->code;
    if (nodes.count) {
        prometheus_print_node_value(out, &nodes, "traind_node_flops",
                                    "Floating-point operations per second of SGEMM on all cores of "
                                    "a node at its newest check.",
                                    offsetof(struct store_node, figures.gflops), 1e9);
        prometheus_print_node_value(out, &nodes, "traind_node_memory_bytes_per_second",
                                    "Bandwidth of a node's memory at its newest check.",
                                    offsetof(struct store_node, figures.memory_gb_per_sec), 1e9);
        prometheus_print_node_value(out, &nodes, "traind_node_clock_hertz",
                                    "Clock of a node's processor at its newest check.",
                                    offsetof(struct store_node, figures.clock_ghz), 1e9);
        prometheus_print_node_value(out, &nodes, "traind_node_checked_timestamp_seconds",
                                    "When a node was last checked.",
                                    offsetof(struct store_node, checked_at), 1);
        prometheus_head(out, "traind_node_verdict", "Verdict on a node's health.", "gauge");
    }
    for (size_t i = 0; i < nodes.count; i++)
        for (int v = 0; v < NODE_VERDICTS; v++)
            fprintf(out, "traind_node_verdict{node=\"%s\",verdict=\"%s\"} %d\n",
                    nodes.items[i].name, node_verdict_name((enum node_verdict)v),
                    node_verdict_now(&nodes.items[i], clock_now(), reason) == (enum node_verdict)v);
    store_nodes_clear(&nodes);
    return 0;
}

static int prometheus_print_notices(const struct request *q, FILE *out, struct error *e)
{
    struct notices_counts counts;
    int64_t waiting;

    notices_count(q->app->notices, &counts);
    if (outbox_waiting(q->app->store, &waiting, e))
        return -(int)e->code;
    prometheus_gauge(out, "traind_notices_waiting", "Notices waiting to be delivered.",
                     (double)waiting);
    fprintf(out,
            "# HELP traind_notices_total Notices delivered or given up.\n"
            "# TYPE traind_notices_total counter\n"
            "traind_notices_total{state=\"delivered\"} %lld\n"
            "traind_notices_total{state=\"failed\"} %lld\n"
            "# HELP traind_notice_attempts_total Attempts to deliver a notice.\n"
            "# TYPE traind_notice_attempts_total counter\n"
            "traind_notice_attempts_total %lld\n",
            (long long)counts.delivered, (long long)counts.failed, (long long)counts.attempts);
    return 0;
}

int handle_prometheus(const struct request *q, struct reply *r, struct error *e)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = must_alloc(open_memstream(&text, &bytes));

    fprintf(out,
            "# HELP traind_build_info The running version.\n# TYPE traind_build_info gauge\n"
            "traind_build_info{version=\"%s\"} 1\n",
            PACKAGE_VERSION);
    int status = prometheus_print_states(q, out, e) || prometheus_print_running(q, out, e) ||
                         prometheus_print_nodes(q, out, e) || prometheus_print_notices(q, out, e) ||
                         usage_print(q, out, e)
                     ? -(int)e->code
                     : 0;
    prometheus_print_failures(q, out);
    prometheus_print_slots(q, out);
    stats_print(out);
    fclose(out);
    if (status == 0)
        status = reply_text(r, 200, "text/plain; version=0.0.4; charset=utf-8", text, bytes, e);
    free(text);
    return status;
}
