/* What two keys of a job document demand of each other. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/host.h"
#include "common/job_options.h"
#include "common/time_limit.h"

static void demand(bool right, const char *pointer, const char *message, struct problems *problems)
{
    if (!right && !problems_about(problems, pointer))
        problems_add(problems, pointer, NULL, "%s", message);
}

static bool ascending(const double *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (values[i] <= values[i - 1])
            return false;
    return true;
}

/* What is wrong with entry i of cluster.hosts; NULL: nothing. */
static const char *wrong_host(const struct job_spec *spec, size_t i)
{
    struct host host;
    int64_t threads = spec->cluster.threads_per_worker > 0 ? spec->cluster.threads_per_worker : 1;

    if (!host_parse(spec->cluster.hosts[i], &host))
        return "must be a host's name, or name:slots with 1 to 4096 slots: letters, digits, dots, "
               "hyphens and underscores, as in \"n1\" or \"n1.cluster:16\"";
    if (host.slots && host.slots / threads < spec->cluster.workers_per_node)
        return "has fewer slots than a node of this job takes: workers_per_node x "
               "threads_per_worker";
    size_t length = strlen(host.name);
    for (size_t k = 0; k < i; k++)
        if (strncmp(spec->cluster.hosts[k], host.name, length) == 0 &&
            (!spec->cluster.hosts[k][length] || spec->cluster.hosts[k][length] == ':'))
            return "names the same host a second time: write each once, and its cores as "
                   "name:slots";
    return NULL;
}

static void check_hosts(const struct job_spec *spec, struct problems *p)
{
    char pointer[64];

    for (size_t i = 0; spec->cluster.hosts && i < spec->cluster.host_count; i++) {
        const char *wrong = wrong_host(spec, i);
        snprintf(pointer, sizeof pointer, "/cluster/hosts/%zu", i);
        demand(!wrong, pointer, wrong, p);
    }
    demand(!spec->cluster.hosts || spec->cluster.host_count >= (size_t)spec->cluster.nodes ||
               problems_about(p, "/cluster/nodes"),
           "/cluster/hosts", "names fewer hosts than cluster.nodes asks for", p);
    demand(!spec->cluster.interface ||
               strspn(spec->cluster.interface,
                      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/@-") ==
                   strlen(spec->cluster.interface),
           "/cluster/interface",
           "must be one interface's name or a subnet, as in \"eth0\" or \"10.0.0.0/24\"", p);
}

void job_check_together(const struct job_spec *spec, struct problems *p)
{
    bool mode_known = !problems_about(p, "/mode"),
         eval_mode = mode_known && spec->mode == JOB_MODE_EVAL;

    demand(!mode_known || eval_mode || spec->data.train, "/data/train",
           "is required: a folder of TFRecord shards or of class folders, or \"synthetic\"", p);
    demand(!eval_mode || spec->data.eval, "/data/eval",
           "is required when mode is \"eval\": the images to evaluate on", p);
    demand(!eval_mode || spec->model.init || job_spec_is_synthetic(spec->data.eval), "/model/init",
           "is required when mode is \"eval\": the weights to evaluate (a safetensors file)", p);
    demand(!spec->eval.stop_at_target || spec->eval.has_target_top1 ||
               problems_about(p, "/eval/target_top1"),
           "/eval/stop_at_target", "needs eval.target_top1, the accuracy to stop at", p);
    demand(!spec->eval.stop_at_target || spec->data.eval || problems_about(p, "/data/eval"),
           "/eval/stop_at_target", "needs data.eval, the images to measure the accuracy on", p);
    demand(!spec->eval.predictions || spec->data.eval || problems_about(p, "/data/eval"),
           "/eval/predictions", "needs data.eval, the images to write predictions of", p);
    demand(ascending(spec->lr.milestones, spec->lr.milestone_count), "/lr/milestones",
           "must be ascending", p);
    demand(!spec->cluster.time_limit || !isnan(time_limit_seconds(spec->cluster.time_limit)),
           "/cluster/time_limit",
           "must be a time above 0 as Slurm writes it: \"90\" (minutes), \"90:00\" "
           "(minutes:seconds), \"01:30:00\", \"2-12\" (days-hours) or \"2-12:30:00\"",
           p);
    demand(spec->steps_rounding != JOB_ROUNDING_EXACT ||
               spec->data.locality != JOB_LOCALITY_NODE || problems_about(p, "/data/locality"),
           "/steps_rounding",
           "exact needs data.locality \"global\": with \"node\" the nodes' epochs end apart", p);
    check_hosts(spec, p);
}
