#include "prep/audit/audit_checks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/dataset/class_names.h"
#include "common/dataset/job_data.h"
#include "common/job/job_document.h"
#include "common/json.h"
#include "common/plan/plan_build.h"
#include "common/system/file.h"
#include "common/text.h"
#include "common/xalloc.h"
#include "prep/audit/audit_mixing.h"

static const char *const role_names[] = {[DATASET_TRAIN] = "train", [DATASET_EVAL] = "validation"};

/* Above these limits the result is a problem; even the real ImageNet has some duplicates. */
#define DUPLICATES_MAX  0.01  /* share of a role's images */
#define LEAKED_MAX      0.001 /* share of the validation's images */
#define MIXED_Z         6.0   /* in standard deviations from random mixing; less is fine */
#define MIXED_FINE      0.98
#define MIXED_TOLERABLE 0.8
#define UNEVEN          5 /* more than so many times as many images of a class as of another */

#define SPAN_BYTES 64
static const char *audit_checks_images_span(int64_t least, int64_t most, char text[SPAN_BYTES])
{
    if (least == most)
        snprintf(text, SPAN_BYTES, "%" PRId64 " image%s", most, plural(most));
    else
        snprintf(text, SPAN_BYTES, "%" PRId64 " to %" PRId64 " images", least, most);
    return text;
}

struct label_counts {
    int64_t outside;
    int missing, first_missing;
    int64_t least, most; /* images per class, of classes that have images */
};

static void audit_checks_count_labels(const struct audit *a, enum dataset_role role,
                                      struct label_counts *out)
{
    int64_t *counts = xcalloc((size_t)a->classes + 1, sizeof *counts);
    const struct audit_role *r = &a->roles[role];

    *out = (struct label_counts){.first_missing = -1, .least = INT64_MAX};
    for (size_t s = 0; s < r->list.count; s++)
        for (int64_t i = 0; i < r->shards[s].count; i++) {
            int32_t label = r->shards[s].records[i].label;
            if (label < 0 || label >= a->classes)
                out->outside++;
            else
                counts[label]++;
        }
    for (int c = 0; c < a->classes; c++) {
        if (counts[c] == 0 && out->missing++ == 0)
            out->first_missing = c;
        if (counts[c] && counts[c] < out->least)
            out->least = counts[c];
        out->most = counts[c] > out->most ? counts[c] : out->most;
    }
    out->least = out->least == INT64_MAX ? 0 : out->least;
    free(counts);
}

void audit_check_labels(struct audit *a)
{
    struct label_counts counts;

    for (enum dataset_role role = DATASET_TRAIN; role <= DATASET_EVAL; role++) {
        if (!a->roles[role].present)
            continue;
        audit_checks_count_labels(a, role, &counts);
        char missing[80] = "", span[SPAN_BYTES];
        int there = a->classes - counts.missing;
        if (counts.missing)
            snprintf(missing, sizeof missing,
                     counts.missing == 1 ? "; %d class has none: %d"
                                         : "; %d classes have none, the first is %d",
                     counts.missing, counts.first_missing);
        char outside[80] = "";
        if (counts.outside)
            snprintf(outside, sizeof outside, "; %" PRId64 " label%s outside 1 to %d",
                     counts.outside, counts.outside == 1 ? " is" : "s are", a->classes);
        bool uneven = role == DATASET_TRAIN && counts.most > UNEVEN * counts.least;
        enum audit_status status = counts.outside          ? AUDIT_PROBLEM
                                   : counts.missing == 0   ? AUDIT_OK
                                   : role == DATASET_TRAIN ? AUDIT_PROBLEM
                                                           : AUDIT_WARNING;
        audit_say(a, role == DATASET_TRAIN ? "classes" : "classes (validation)", status,
                  json_pack("{s:s, s:i, s:i, s:I, s:I, s:I}", "role", role_names[role], "classes",
                            a->classes, "missing", counts.missing, "outside",
                            (json_int_t)counts.outside, "least", (json_int_t)counts.least, "most",
                            (json_int_t)counts.most),
                  "%d class%s of %s%s%s%s", there, there == 1 ? "" : "es",
                  audit_checks_images_span(counts.least, counts.most, span), missing, outside,
                  uneven ? "; see class_weights in train-job(5)" : "");
    }
}

struct copy {
    uint64_t hash[2];
    int32_t label;
    uint8_t role;
};

static int audit_checks_by_hash(const void *a, const void *b)
{
    const struct copy *x = a, *y = b;
    for (int i = 0; i < 2; i++)
        if (x->hash[i] != y->hash[i])
            return x->hash[i] < y->hash[i] ? -1 : 1;
    return x->role - y->role;
}

static struct copy *audit_gather_copies(const struct audit *a, int64_t *count)
{
    int64_t total = a->roles[DATASET_TRAIN].images + a->roles[DATASET_EVAL].images, n = 0;
    struct copy *copies = malloc((size_t)(total + 1) * sizeof *copies);

    for (int role = 0; role < 2 && copies; role++)
        for (size_t s = 0; s < a->roles[role].list.count && a->roles[role].present; s++)
            for (int64_t i = 0; i < a->roles[role].shards[s].count; i++) {
                const struct audit_record *r = &a->roles[role].shards[s].records[i];
                copies[n++] = (struct copy){
                    {r->hash[0], r->hash[1]},
                    r->label, (uint8_t)role
                };
            }
    *count = n;
    return copies;
}

struct duplicates {
    int64_t extra[2]; /* by role: images that are duplicates of another one */
    int64_t leaked;   /* validation images that are also training images */
    int64_t disagree; /* images that occur with different labels */
};

/* Counts a group of equal hashes, training images first. */
static void audit_checks_count_group(const struct copy *group, int64_t count, struct duplicates *d)
{
    int64_t of[2] = {0, 0};
    bool disagree = false;

    for (int64_t i = 0; i < count; i++) {
        of[group[i].role]++;
        disagree = disagree || group[i].label != group[0].label;
    }
    for (int role = 0; role < 2; role++)
        d->extra[role] += of[role] > 1 ? of[role] - 1 : 0;
    d->leaked += of[DATASET_TRAIN] ? of[DATASET_EVAL] : 0;
    d->disagree += disagree;
}

int audit_check_duplicates(struct audit *a, struct error *e)
{
    int64_t count, end;
    struct copy *copies = audit_gather_copies(a, &count);
    struct duplicates d = {0};

    if (!copies)
        return error_set(e, ERR_NO_MEMORY, "no memory to look for duplicates");
    qsort(copies, (size_t)count, sizeof *copies, audit_checks_by_hash);
    for (int64_t first = 0; first < count; first = end) {
        for (end = first + 1; end < count && copies[end].hash[0] == copies[first].hash[0] &&
                              copies[end].hash[1] == copies[first].hash[1];)
            end++;
        if (end - first > 1)
            audit_checks_count_group(copies + first, end - first, &d);
    }
    free(copies);
    bool many = (double)d.leaked > LEAKED_MAX * (double)a->roles[DATASET_EVAL].images;
    for (int role = 0; role < 2; role++)
        many = many || (double)d.extra[role] > DUPLICATES_MAX * (double)a->roles[role].images;
    bool any = d.extra[0] || d.extra[1] || d.leaked;
    audit_say(a, "duplicates",
              many  ? AUDIT_PROBLEM
              : any ? AUDIT_WARNING
                    : AUDIT_OK,
              json_pack("{s:I, s:I, s:I, s:I}", "train", (json_int_t)d.extra[0], "validation",
                        (json_int_t)d.extra[1], "validation_in_train", (json_int_t)d.leaked,
                        "of_two_classes", (json_int_t)d.disagree),
              "%" PRId64 " within training, %" PRId64 " within validation, %" PRId64
              " validation images are in training too; %" PRId64 " pictures have two classes",
              d.extra[0], d.extra[1], d.leaked, d.disagree);
    return 0;
}

int audit_check_mixing(struct audit *a, struct error *e)
{
    const struct audit_role *r = &a->roles[DATASET_TRAIN];
    struct mixing m;

    if (!r->present || r->images == 0)
        return 0;
    int rc = mixing_measure(r->shards, (int)r->list.count, a->classes, &m, e);
    if (rc)
        return rc;
    enum audit_status status = m.z < MIXED_Z || m.score >= MIXED_FINE ? AUDIT_OK
                               : m.score >= MIXED_TOLERABLE           ? AUDIT_WARNING
                                                                      : AUDIT_PROBLEM;
    static const char *const verdicts[] = {
        "the classes are well mixed", "the classes are mixed unevenly",
        "the classes are not mixed, which reduces accuracy: convert the data set again"};
    const char *slash = strrchr(r->list.files[m.worst], '/');
    char worst[160] = "";
    if (status != AUDIT_OK)
        snprintf(worst, sizeof worst, "; %.80s effectively contains %.0f %% of them", slash + 1,
                 100 * m.worst_score);
    audit_say(a, "mixing", status,
              json_pack("{s:o, s:o, s:s, s:s, s:o}", "score", json_number(m.score), "z",
                        json_number(m.z), "verdict", verdicts[status], "worst_shard", slash + 1,
                        "worst_score", json_number(m.worst_score)),
              "%s: score %.3f (1 is a random distribution)%s", verdicts[status], m.score, worst);
    return 0;
}

void audit_check_balance(struct audit *a)
{
    for (enum dataset_role role = DATASET_TRAIN; role <= DATASET_EVAL; role++) {
        const struct audit_role *r = &a->roles[role];
        int64_t least = INT64_MAX, most = 0;
        char span[SPAN_BYTES];
        if (!r->present)
            continue;
        for (size_t s = 0; s < r->list.count; s++) {
            least = r->shards[s].count < least ? r->shards[s].count : least;
            most = r->shards[s].count > most ? r->shards[s].count : most;
        }
        bool even = most - least <= 1 || (double)most <= 1.1 * (double)least;
        audit_say(a, role == DATASET_TRAIN ? "balance" : "balance (validation)",
                  even ? AUDIT_OK : AUDIT_WARNING,
                  json_pack("{s:s, s:I, s:I, s:I}", "role", role_names[role], "shards",
                            (json_int_t)r->list.count, "least", (json_int_t)least, "most",
                            (json_int_t)most),
                  "%zu shard%s of %s", r->list.count, plural((int64_t)r->list.count),
                  audit_checks_images_span(least, most, span));
    }
}

static const struct manifest_shard *
audit_checks_find_shard(const struct audit *a, enum dataset_role role, const char *path)
{
    const char *name = file_base_name(path);

    for (size_t i = 0; i < a->manifest.count; i++) {
        const struct manifest_shard *s = &a->manifest.shards[i];
        if (s->role == role && strcmp(file_base_name(s->file), name) == 0)
            return s;
    }
    return NULL;
}

/* Returns 1 if the shard differs from the manifest. */
static int audit_checks_compare_shard(struct audit *a, enum dataset_role role, size_t s)
{
    const struct audit_shard *got = &a->roles[role].shards[s];
    const char *path = a->roles[role].list.files[s];
    const struct manifest_shard *listed = audit_checks_find_shard(a, role, path);

    if (!listed)
        audit_find(a, "%s is not in the manifest", path);
    else if (listed->bytes != got->bytes)
        audit_find(a, "%s has %" PRIu64 " bytes; the manifest says %" PRIu64, path, got->bytes,
                   listed->bytes);
    else if (strcmp(listed->hash, got->hash) != 0)
        audit_find(a, "the hash of %s differs from the manifest", path);
    else if (listed->images != got->count)
        audit_find(a, "%s holds %" PRId64 " images; the manifest says %" PRId64, path, got->count,
                   listed->images);
    else
        return 0;
    return 1;
}

void audit_check_manifest(struct audit *a)
{
    static const char *const kept[] = {"resize", "quality", "reencode"};
    const json_t *manifest = a->manifest.manifest;
    int wrong = 0, missing = 0;
    char images[128] = "";

    if (!a->has_manifest) {
        audit_say(a, "manifest", a->manifest_broken ? AUDIT_PROBLEM : AUDIT_WARNING, NULL,
                  a->manifest_broken ? "cannot be read"
                                     : "missing: the data set was not made by train-prep");
        return;
    }
    for (enum dataset_role role = DATASET_TRAIN; role <= DATASET_EVAL; role++) {
        size_t listed = 0, there = a->roles[role].present ? a->roles[role].list.count : 0;
        for (size_t s = 0; s < there; s++)
            wrong += audit_checks_compare_shard(a, role, s);
        for (size_t i = 0; i < a->manifest.count; i++)
            listed += a->manifest.shards[i].role == role &&
                      manifest_shard_in(&a->manifest.shards[i], a->manifest.part);
        /* In a folder of one role, the other role is not missing. */
        if (listed > there && (a->roles[role].present || a->manifest_here))
            missing += (int)(listed - there);
    }
    json_t *values = json_pack("{s:i, s:i}", "differ", wrong, "missing", missing);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        json_object_set(values, kept[i], json_object_get(manifest, kept[i]));
    if (json_get_integer(manifest, "quality", 0))
        snprintf(images, sizeof images, "; images made with max-side %d, quality %d%s",
                 (int)json_get_integer(manifest, "resize", 0),
                 (int)json_get_integer(manifest, "quality", 0),
                 json_is_true(json_object_get(manifest, "reencode")) ? ", reencode" : "");
    if (wrong || missing)
        audit_say(a, "manifest", AUDIT_PROBLEM, values,
                  "%d shard%s not match the manifest, %d of them missing", wrong,
                  wrong == 1 ? " does" : "s do", missing);
    else
        audit_say(a, "manifest", AUDIT_OK, values, "all shards match the manifest%s", images);
}

void audit_check_names(struct audit *a)
{
    struct job_spec spec = {
        .data = {.train = (char *)a->options->dir, .eval = (char *)a->options->dir}
    };
    const struct audit_role *roles = a->roles;
    struct job_classes classes;
    const char *key;
    struct error e;

    for (int role = 0; role < 2; role++)
        if (roles[role].present && *roles[role].list.remarks)
            audit_say(a, "files", AUDIT_WARNING, NULL, "%s", roles[role].list.remarks);
    if (!roles[DATASET_TRAIN].present || !roles[DATASET_EVAL].present)
        return;
    if (job_classes_compare(&spec, (struct dataset_part){0, 1}, NULL, false, &classes, &key, &e))
        audit_say(a, "class names", AUDIT_PROBLEM, NULL, "the validation data %s", e.text);
    job_classes_clear(&classes);
}

/* ---- whether the ranks of a job divide the data evenly */

static void audit_checks_plan_train(struct audit *a, const struct plan *plan)
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

/* Each image is evaluated once, so some ranks have nothing to do at the end. */
static void audit_checks_plan_eval(struct audit *a, const struct plan *plan, int64_t batch)
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

/* Checks data staged by node: the node with the fewest images limits an epoch. */
static void audit_checks_plan_nodes(struct audit *a, int nodes)
{
    const struct audit_role *r = &a->roles[DATASET_TRAIN];
    int64_t least = INT64_MAX, most = 0;

    if (nodes < 2 || a->manifest.part.of > 1)
        return;
    int64_t *of = xcalloc((size_t)nodes, sizeof *of);
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
    audit_checks_plan_train(a, plan);
    if (plan->eval_images > 0)
        audit_checks_plan_eval(a, plan, spec->eval.batch);
    audit_checks_plan_nodes(a, (int)spec->cluster.nodes);
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
