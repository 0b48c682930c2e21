/* The data of a run that starts, and the plan that follows from their number. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/dataset/class_names.h"
#include "common/dataset/plan_inputs.h"
#include "common/job/job_document.h"
#include "common/json.h"
#include "common/plan/replan.h"
#include "common/run/weights.h"
#include "common/text.h"
#include "worker/start/start_parts.h"

static int start_data_open(const char *path, enum dataset_role role, struct dataset_part part,
                           struct dataset **data, struct error *e)
{
    if (!path || strcmp(path, "synthetic") == 0)
        return 0;
    int status = dataset_open_part(path, role, part, data, e);
    if (!status)
        dataset_keep_index(*data);
    return status;
}

static int start_data_open_both(struct run *r, struct error *e)
{
    const struct dataset_part whole = {0, 1};
    int status = 0;

    if (r->spec->mode == JOB_MODE_TRAIN)
        status = start_data_open(r->spec->data.train, DATASET_TRAIN, r->part, &r->train_data, e);
    if (!status)
        status = start_data_open(r->spec->data.eval, DATASET_EVAL, whole, &r->eval_data, e);
    return status;
}

/* Rank 0 first, then one rank of each other machine, then all: so that an index that has to be made
 * is made once, whether the data lie on a shared disk or on each machine's own. Collective. */
static int start_data_open_in_turn(struct run *r, struct error *e)
{
    int mine = r->rank == 0 ? 0 : traincomm_host_rank(r->comm) == 0 ? 1 : 2, status = 0;

    for (int turn = 0; turn < 3 && !status; turn++) {
        if (turn == mine)
            status = start_data_open_both(r, e);
        status = run_agree(r, status, e);
    }
    return status;
}

/* Ranks are numbered node by node, as mpirun places them. */
static struct dataset_part start_data_part_of_rank(const struct run *r)
{
    int workers = (int)r->spec->cluster.workers_per_node;

    if (r->spec->data.locality == JOB_LOCALITY_GLOBAL)
        return (struct dataset_part){0, 1};
    return (struct dataset_part){r->rank / workers, (int)r->spec->cluster.nodes};
}

/* Of all nodes: with data.locality node each rank has opened its node's part. Collective. */
static void start_count_images(const struct run *r, struct plan_counts *counts)
{
    double mine = r->train_data ? (double)dataset_images(r->train_data) : 0;
    double least = mine, most = mine;
    double sum = r->rank % (r->world / r->part.of) == 0 ? mine : 0;

    traincomm_reduce(r->comm, TRAINCOMM_MIN, &least, 1);
    traincomm_reduce(r->comm, TRAINCOMM_MAX, &most, 1);
    traincomm_reduce(r->comm, TRAINCOMM_SUM, &sum, 1);
    *counts = (struct plan_counts){
        .train = {.images = (int64_t)sum, .least = (int64_t)least, .most = (int64_t)most},
        .eval = r->eval_data ? dataset_images(r->eval_data) : 0,
    };
}

static int start_data_check_image_count(const struct run *r, const struct plan_counts *counts,
                                        struct error *e)
{
    if (r->eval_data && r->plan->eval_images > counts->eval)
        return error_set(e, ERR_INVALID,
                         "data.eval_images is %lld, but %s contains only %lld images: omit "
                         "eval_images to count them",
                         (long long)r->plan->eval_images, r->spec->data.eval,
                         (long long)counts->eval);
    if (!r->train_data || r->plan->train_images <= counts->train.images)
        return 0;
    return error_set(e, ERR_INVALID,
                     "data.train_images is %lld, but %s contains only %lld images: omit "
                     "train_images to count them",
                     (long long)r->plan->train_images, r->spec->data.train,
                     (long long)counts->train.images);
}

static int start_make_plan(struct run *r, const struct plan_counts *counts, struct error *e)
{
    struct plan_inputs inputs = {0};
    struct problems problems = {0};
    int status = plan_inputs_of_counts(r->spec, counts, &inputs, e);
    if (status)
        return status;
    r->plan = plan_make(r->spec, &inputs, &problems);
    if (!r->plan)
        status = start_refuse(&problems, "plan", ERR_INVALID, e);
    problems_clear(&problems);
    if (!status)
        status = start_data_check_image_count(r, counts, e);
    return status;
}

/* Warns of each line, unless the plan that is stored with the job has told its submitter. */
static int start_data_say_lines(struct run *r, const char *lines, struct error *e)
{
    char path[PATH_MAX + 16];
    struct error none;
    int status = 0;

    snprintf(path, sizeof path, "%s/plan.json", r->run_dir);
    json_t *plan = access(path, F_OK) ? NULL : json_document_load(path, &none);
    for (size_t length; *lines && !status; lines += length + (lines[length] == '\n')) {
        length = strcspn(lines, "\n");
        json_t *line = json_stringn(lines, length), *said;
        bool told = false;
        size_t i;
        json_array_foreach (json_object_get(plan, "warnings"), i, said)
            told = told || json_equal(said, line);
        if (line && !told)
            status = run_warn(r, r->from.step, json_string_value(line), e);
        json_decref(line);
    }
    json_decref(plan);
    return status;
}

static int start_data_open_weights(const struct run *r, struct safetensors **weights,
                                   struct error *e)
{
    char path[PATH_MAX + 32];

    *weights = NULL;
    snprintf(path, sizeof path, "%s/model.safetensors", r->resumed_from);
    if (r->resumes)
        return safetensors_open(path, weights, e);
    return *r->init_path ? weights_open(r->init_path, path, weights, e) : 0;
}

/* The plan of a daemon has compared them, unless the data changed since. */
static int start_data_check_classes(struct run *r, struct error *e)
{
    const struct job_spec *s = r->spec;
    struct safetensors *weights;
    struct job_classes c;
    const char *key;
    int status = start_data_open_weights(r, &weights, e);

    if (status)
        return status;
    if (job_classes_compare(s, r->part, weights, r->resumes, &c, &key, e))
        status = error_prefix(e, "%s, %s", key,
                              strcmp(key, "data.eval") == 0 ? s->data.eval : s->data.train);
    if (!status)
        status = start_data_say_lines(r, c.unknown, e);
    if (!status)
        status = start_data_say_lines(r, c.remark, e);
    r->classes = class_names_to_text(c.train.list || !r->resumes ? &c.train : &c.weights);
    job_classes_clear(&c);
    safetensors_close(weights);
    return status;
}

/* What is not wrong with the data, and yet should be known. */
static int start_data_say_remarks(struct run *r, struct error *e)
{
    const char *train = r->train_data ? dataset_remarks(r->train_data) : "";
    const char *eval = r->eval_data ? dataset_remarks(r->eval_data) : "";
    int status = start_data_say_lines(r, train, e);

    return status || strcmp(train, eval) == 0 ? status : start_data_say_lines(r, eval, e);
}

static const char *const plan_keys[] = {"train_images", "global_batch", "train_steps",
                                        "warmup_steps", "peak_lr",      "start_lr"};
#define PLAN_KEYS (sizeof plan_keys / sizeof plan_keys[0])

/* A file keeps numbers with twelve digits. */
static bool start_data_plan_same_number(const json_t *stored, const json_t *mine)
{
    double a = json_number_value(stored), b = json_number_value(mine);
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

/* Compares the first keys of two plans. Returns the first that differs, or keys. */
static size_t start_data_first_difference(const json_t *stored, const json_t *mine, size_t keys)
{
    size_t i = 0;
    while (i < keys && start_data_plan_same_number(json_object_get(stored, plan_keys[i]),
                                                   json_object_get(mine, plan_keys[i])))
        i++;
    return i;
}

static int start_data_refuse_plan(const char *path, const char *key, const json_t *stored,
                                  const json_t *mine, struct error *e)
{
    return error_set(e, ERR_CONFLICT,
                     "%s has %s = %.12g, but the data now gives %.12g: the data set or the job has "
                     "changed since the plan was made; submit the job again",
                     path, key, json_number_value(json_object_get(stored, key)),
                     json_number_value(json_object_get(mine, key)));
}

/* A resumed run may go by another plan (on other workers): plan.json is then the one in force, and
 * the attempt's folder keeps the one before it. */
static int start_data_replace_plan(const struct run *r, const char *path, const json_t *stored,
                                   const json_t *mine, struct error *e)
{
    char kept[PATH_MAX + 32];

    snprintf(kept, sizeof kept, "%s/plan-before.json", r->attempt_dir);
    int status = json_file_write(kept, stored, e);
    return status ? status : json_file_write(path, mine, e);
}

static int start_data_check_against_stored_plan(const struct run *r, const char *path,
                                                const json_t *mine, struct error *e)
{
    json_t *stored = json_document_load(path, e);
    if (!stored)
        return -(int)e->code;
    size_t strict = r->resumes ? 1 : PLAN_KEYS; /* the number of images */
    size_t differs = start_data_first_difference(stored, mine, PLAN_KEYS);
    int status = 0;
    if (differs < strict)
        status = start_data_refuse_plan(path, plan_keys[differs], stored, mine, e);
    else if (differs < PLAN_KEYS)
        status = start_data_replace_plan(r, path, stored, mine, e);
    json_decref(stored);
    return status;
}

static int start_data_store_or_check_plan(const struct run *r, struct error *e)
{
    char plan_path[PATH_MAX + 16], job_path[PATH_MAX + 16];
    json_t *job = job_spec_to_json(r->spec), *plan = plan_to_json(r->plan);
    int status = 0;

    snprintf(plan_path, sizeof plan_path, "%s/plan.json", r->run_dir);
    snprintf(job_path, sizeof job_path, "%s/job.json", r->run_dir);
    if (access(plan_path, F_OK) == 0) {
        status = start_data_check_against_stored_plan(r, plan_path, plan, e);
    } else {
        if (access(job_path, F_OK) != 0)
            status = json_file_write(job_path, job, e);
        if (!status)
            status = json_file_write(plan_path, plan, e);
    }
    json_decref(job);
    json_decref(plan);
    return status;
}

static int start_data_take_place(struct run *r, struct error *e)
{
    const struct run_state *from = &r->from;

    if (!r->resumes)
        return 0;
    if (from->train_images != r->plan->train_images)
        return error_set(e, ERR_CONFLICT,
                         "%s is from a run with %lld training images, but there are now %lld: the "
                         "data set or the job has changed",
                         r->resumed_from, (long long)from->train_images,
                         (long long)r->plan->train_images);
    int64_t schedule_step;
    replan_place(from->epoch, from->epoch_images, r->plan, &schedule_step, &r->image_shift);
    r->step_shift = schedule_step - from->step;
    return 0;
}

/* A `warning` with the old and new numbers. */
static int start_data_say_new_numbers(struct run *r, struct error *e)
{
    const struct run_state *from = &r->from;
    const struct plan *plan = r->plan;
    int64_t done = from->step + r->step_shift;
    char message[512];

    if (!r->resumes || (from->world_size == r->world && from->global_batch == plan->global_batch))
        return 0;
    snprintf(message, sizeof message,
             "resumed on %d worker%s instead of %lld: a global batch of %lld images (%lld x %lld a "
             "worker) instead of "
             "%lld, a peak learning rate of %.9g instead of %.9g; %lld of %lld steps are left",
             r->world, plural(r->world), (long long)from->world_size, (long long)plan->global_batch,
             (long long)r->spec->accumulate_steps, (long long)r->spec->batch_per_worker,
             (long long)from->global_batch, plan->peak_lr, from->peak_lr,
             (long long)(plan->train_steps > done ? plan->train_steps - done : 0),
             (long long)plan->train_steps);
    return run_warn(r, from->step, message, e);
}

static int start_data_say_other_threads(struct run *r, struct error *e)
{
    char message[256];

    if (!r->resumes || r->from.threads == r->threads)
        return 0;
    snprintf(
        message, sizeof message,
        "resumed with %d thread%s a worker instead of %lld: sums are rounded in another order, "
        "so the weights will not be bit for bit those of an undisturbed run",
        r->threads, plural(r->threads), (long long)r->from.threads);
    return run_warn(r, r->from.step, message, e);
}

int start_data(struct run *r, struct error *e)
{
    struct plan_counts counts;

    r->part = start_data_part_of_rank(r);
    int status = start_data_open_in_turn(r, e);
    if (status)
        return status;
    start_count_images(r, &counts);
    status = start_make_plan(r, &counts, e);
    if (!status && r->rank == 0)
        status = start_data_check_classes(r, e);
    if (!status && r->rank == 0)
        status = start_data_say_remarks(r, e);
    if (!status)
        status = start_data_take_place(r, e);
    status = run_agree(r, status, e);
    if (!status && r->rank == 0)
        status = start_data_store_or_check_plan(r, e);
    if (!status)
        status = start_data_say_new_numbers(r, e);
    if (!status)
        status = start_data_say_other_threads(r, e);
    return run_agree(r, status, e);
}
