/* Whether the ranks of a job divide the data evenly, and what it costs where they do not. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/dataset/class_names.h"
#include "common/dataset/job_data.h"
#include "common/job/job_document.h"
#include "common/json.h"
#include "common/plan/plan_build.h"
#include "prep/audit/audit.h"

/* Training: what does not fill a global batch is left out of each epoch. */
static void audit_plan_check_train(struct audit *a, const struct plan *plan)
{
    int64_t dropped = plan->dropped_images_per_epoch, batch = plan->global_batch;
    double of_epoch = 100.0 * (double)dropped / (double)plan->train_images;
    double of_step = 100.0 * (double)dropped / (double)batch;

    audit_say(a, "plan", dropped ? AUDIT_WARNING : AUDIT_OK,
              json_pack("{s:I, s:I, s:I, s:I, s:o, s:o}", "ranks", (json_int_t)plan->world_size,
                        "global_batch", (json_int_t)batch, "steps_per_epoch",
                        (json_int_t)plan->steps_per_epoch, "dropped_images_per_epoch",
                        (json_int_t)dropped, "dropped_percent_of_epoch", json_number(of_epoch),
                        "dropped_percent_of_step", json_number(of_step)),
              "%" PRId64 " ranks x %" PRId64 " = a batch of %" PRId64 ": %" PRId64
              " steps an epoch, %" PRId64 " images left out of each (%.3f %% of it, %.0f %% of a "
              "step; others each epoch)",
              plan->world_size, batch / plan->world_size, batch, plan->steps_per_epoch, dropped,
              of_epoch, of_step);
}

/* Evaluation: each image once, so some ranks idle in the last run. */
static void audit_plan_check_eval(struct audit *a, const struct plan *plan, int64_t batch)
{
    int64_t images = plan->eval_images, run = plan->world_size * batch;
    int64_t runs = (images + run - 1) / run, idle = runs * run - images;
    double share = 100.0 * (double)idle / (double)(runs * run);

    audit_say(a, "plan (validation)", share > 10 ? AUDIT_WARNING : AUDIT_OK,
              json_pack("{s:I, s:I, s:I, s:o}", "images", (json_int_t)images, "runs",
                        (json_int_t)runs, "idle_places", (json_int_t)idle, "idle_percent",
                        json_number(share)),
              "%" PRId64 " images in %" PRId64 " runs of %" PRId64 ": %" PRId64
              " places stay empty (%.1f %% of the time); none is dropped or repeated",
              images, runs, run, idle, share);
}

/* Shards dealt to nodes, as data staged by node has them: an epoch is as long as the node with the
 * fewest images allows. */
static void audit_plan_check_nodes(struct audit *a, int nodes)
{
    const struct audit_role *r = &a->roles[DATASET_TRAIN];
    int64_t *of = calloc((size_t)nodes, sizeof *of), least = INT64_MAX, most = 0;

    if (!of || nodes < 2 || a->manifest.part.of > 1) {
        free(of);
        return;
    }
    for (size_t s = 0; s < r->list.count; s++)
        of[dataset_list_node(&r->list, nodes, (uint32_t)s)] += r->shards[s].count;
    for (int i = 0; i < nodes; i++) {
        least = of[i] < least ? of[i] : least;
        most = of[i] > most ? of[i] : most;
    }
    free(of);
    int64_t lost = r->images - least * nodes;
    double share = r->images ? 100.0 * (double)lost / (double)r->images : 0;
    audit_say(a, "plan (nodes)",
              least == 0  ? AUDIT_PROBLEM
              : share > 1 ? AUDIT_WARNING
                          : AUDIT_OK,
              json_pack("{s:i, s:I, s:I, s:I, s:o}", "nodes", nodes, "least", (json_int_t)least,
                        "most", (json_int_t)most, "unused_images_per_epoch", (json_int_t)lost,
                        "unused_percent", json_number(share)),
              "%zu shards on %d nodes: %" PRId64 " to %" PRId64
              " images each; staged by node, %" PRId64 " an epoch would not be used (%.2f %%)",
              r->list.count, nodes, least, most, lost, share);
}

static int audit_make_plan(struct audit *a, const struct job_spec *spec, struct error *e)
{
    struct plan_inputs inputs = {.train_images = a->roles[DATASET_TRAIN].images,
                                 .eval_images = a->roles[DATASET_EVAL].images};
    struct problems problems = {0};
    struct plan *plan = NULL;
    struct job_classes classes;
    const char *key;

    if (job_classes_compare(spec, (struct dataset_part){0, 1}, NULL, false, &classes, &key, e))
        snprintf(inputs.data.other_classes, sizeof inputs.data.other_classes, "%s", e->text);
    job_classes_clear(&classes);
    inputs.data.classes = a->classes;
    if (inputs.train_images == 0)
        return error_set(e, ERR_USAGE, "--plan needs training images, and the data set has none");
    plan = plan_make(spec, &inputs, &problems);
    if (!plan) {
        char *text = problems_to_text(&problems);
        audit_say(a, "plan", AUDIT_PROBLEM, NULL, "the job does not match the data: %s", text);
        free(text);
        problems_clear(&problems);
        return 0;
    }
    audit_plan_check_train(a, plan);
    if (plan->eval_images > 0)
        audit_plan_check_eval(a, plan, spec->eval.batch);
    audit_plan_check_nodes(a, (int)spec->cluster.nodes);
    plan_destroy(plan);
    problems_clear(&problems);
    return 0;
}

int audit_check_plan(struct audit *a, struct error *e)
{
    if (!a->options->plan)
        return 0;
    struct job_spec *spec = job_data_load(a->options->plan, e);
    if (!spec)
        return -(int)e->code;
    int rc = audit_make_plan(a, spec, e);
    job_spec_destroy(spec);
    return rc;
}
