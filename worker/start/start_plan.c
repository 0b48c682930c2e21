#include "worker/start/start_plan.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/dataset/class_names.h"
#include "common/dataset/job_data.h"
#include "common/job/job_check.h"
#include "common/job/job_document.h"
#include "common/job/recipe/preset.h"
#include "common/json.h"
#include "common/log.h"
#include "common/plan/plan_build.h"
#include "common/plan/replan.h"
#include "common/run/stall_report.h"
#include "common/run/weights.h"
#include "common/system/file.h"
#include "common/text.h"
#include "common/xalloc.h"
#include "worker/model/forward_backward.h"
#include "worker/watch/stall.h"

#define STORED_DIGITS 12 /* number of digits in job.json, as printed by json_file_write */

static int start_job_share_document(struct run *r, const char *path, json_t **document,
                                    struct error *e)
{
    char *text = NULL;
    long long bytes = -1;
    json_t *value = NULL;
    int status = 0;

    if (r->rank == 0) {
        value = json_document_load(path, e);
        status = value ? 0 : -(int)e->code;
        if (value) /* on rank 0 only, because data of other hosts may differ */
            json_decref(job_data_complete(value));
    }
    status = run_agree(r, status, e);
    if (status)
        return status;
    if (r->rank == 0) {
        text = json_dumps(value, JSON_COMPACT);
        bytes = (long long)strlen(text);
    }
    traincomm_broadcast(r->comm, &bytes, sizeof bytes, 0);
    if (r->rank != 0)
        text = xmalloc((size_t)bytes + 1);
    traincomm_broadcast(r->comm, text, (size_t)bytes, 0);
    if (r->rank != 0)
        value = json_document_parse(text, (size_t)bytes, e);
    free(text);
    *document = value;
    return value ? 0 : -(int)e->code;
}

static int start_refuse(const struct problems *problems, const char *path, enum error_code code,
                        struct error *e)
{
    struct buffer joined = BUFFER(ERROR_TEXT_BYTES);
    char *text = problems_to_text(problems), *rest = NULL;

    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        buffer_printf(&joined, "%s%s", joined.bytes ? "; " : "", line);
    int status = error_set(e, code, "%s: %s", path, joined.bytes ? joined.data : "not a valid job");
    buffer_clear(&joined);
    free(text);
    return status;
}

static int start_job_parse_document(const char *path, const json_t *document,
                                    struct job_spec **spec, struct error *e)
{
    struct problems problems = {0};
    int status = 0;

    *spec = job_spec_parse(document, preset_lookup, NULL, &problems);
    if (!*spec)
        status = start_refuse(&problems, path, ERR_INVALID, e);
    problems_clear(&problems);
    return status;
}

/* If the document leaves the number of workers to the plan, uses the number that was started. */
static int start_job_take_workers(struct job_spec *spec, int world, struct error *e)
{
    struct problems problems = {0};
    int64_t nodes = spec->cluster.nodes;
    int status = 0;

    if (world % nodes)
        return error_set(e, ERR_INVALID,
                         "cluster.workers_per_node is 0, but the %d workers that were started "
                         "cannot be divided equally among %lld nodes",
                         world, (long long)nodes);
    spec->cluster.workers_per_node = world / nodes;
    job_batch_settle(spec, spec->states_batch, &problems);
    if (problems.count)
        status = start_refuse(&problems, "the job", ERR_INVALID, e);
    problems_clear(&problems);
    return status;
}

/* With data.locality "node", the same number of nodes continue with their parts of the data, whose
 * use the checkpoint records. Any other number of nodes gets new parts. */
static int start_job_replan_workers(struct job_spec *spec, int world, struct error *e)
{
    int64_t nodes = spec->cluster.nodes;
    int status = replan_spec(spec, world, e);

    if (status || spec->data.locality != JOB_LOCALITY_NODE || world % nodes)
        return status;
    spec->cluster.nodes = nodes;
    spec->cluster.workers_per_node = world / nodes;
    return 0;
}

/* A run that does not resume must have the number of workers that the job specifies. */
static int start_job_fit_world(struct job_spec *spec, int world, bool resumes, struct error *e)
{
    if (job_spec_leaves_workers(spec))
        return start_job_take_workers(spec, world, e);
    int64_t wanted = job_spec_world_size(spec);
    if (wanted == world)
        return 0;
    if (resumes)
        return start_job_replan_workers(spec, world, e);
    return error_set(e, ERR_INVALID,
                     "the job asks for %lld x %lld = %lld workers, but %d %s started: "
                     "use mpirun -np %lld, or change cluster.nodes and cluster.workers_per_node",
                     (long long)spec->cluster.nodes, (long long)spec->cluster.workers_per_node,
                     (long long)wanted, world, world == 1 ? "was" : "were", (long long)wanted);
}

static json_t *start_job_as_stored(const struct job_spec *spec)
{
    json_t *document = job_spec_to_json(spec);
    char *text = json_dumps(document, JSON_REAL_PRECISION(STORED_DIGITS));
    json_t *stored = text ? json_loads(text, 0, NULL) : NULL;

    free(text);
    json_decref(document);
    return stored;
}

static int start_job_compare(const char *path, const struct job_spec *stored,
                             const struct job_spec *mine, struct error *e)
{
    json_t *jobs[] = {start_job_as_stored(stored), start_job_as_stored(mine)},
           *differences = json_array();
    char key[PROBLEM_KEY_BYTES];
    int status = 0;

    json_differences(jobs, 2, differences);
    const json_t *first = json_array_get(differences, 0);
    if (first)
        status = error_set(e, ERR_CONFLICT,
                           "%s belongs to another job (%s differs): use another --run-dir, or "
                           "continue that job with --resume",
                           path, problem_key(json_get_text(first, "pointer", ""), key));
    json_decref(jobs[0]);
    json_decref(jobs[1]);
    json_decref(differences);
    return status;
}

static int start_job_check_stored(const struct run *r, const char *path, struct error *e)
{
    struct job_spec *stored = NULL;
    json_t *document = json_document_load(path, e);

    if (!document)
        return -(int)e->code;
    int status = start_job_parse_document(path, document, &stored, e);
    json_decref(document);
    /* If the stored job has another number of workers than were started, report that key. */
    if (!status && job_spec_leaves_workers(stored)) {
        status = start_job_take_workers(stored, r->world, e);
        if (status)
            error_prefix(e, "%s", path);
    }
    if (!status)
        status = start_job_compare(path, stored, r->spec, e);
    job_spec_destroy(stored);
    return status;
}

/* A new run must not mix its events and plan with those of another job; therefore the error is not
 * logged in that directory either. If the daemon started the run, job_file is the directory's own
 * file. Call on rank 0. */
static int start_job_check_run_dir(struct run *r, const char *job_file, struct error *e)
{
    char path[PATH_MAX];
    struct stat self, stored;

    file_path(path, NULL, "%s/job.json", r->run_dir);
    if (stat(path, &stored))
        return 0;
    if (stat(job_file, &self) == 0 && self.st_dev == stored.st_dev && self.st_ino == stored.st_ino)
        return 0;
    int status = start_job_check_stored(r, path, e);
    if (status) {
        stall_report_to(r->stall, NULL);
        report_destroy(r->report);
        r->report = NULL;
    }
    return status;
}

int start_job(struct run *r, const char *path, bool resumes, struct error *e)
{
    json_t *document = NULL;
    int status = start_job_share_document(r, path, &document, e);

    if (!status)
        status = start_job_parse_document(path, document, &r->spec, e);
    json_decref(document);
    if (!status)
        status = start_job_fit_world(r->spec, r->world, resumes, e);
    if (!status && !resumes && r->rank == 0)
        status = start_job_check_run_dir(r, path, e);
    return run_agree(r, status, e);
}

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

/* Rank 0 opens first, then one rank of each other machine, then all others, so that an index is
 * built only once, on a shared disk or on each machine's disk. Collective. */
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

/* Sums over the nodes, each of which has opened its own part. Collective. */
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

static int start_warn_lines(struct run *r, const char *lines, struct error *e)
{
    char path[PATH_MAX];
    struct error none;
    int status = 0;

    file_path(path, NULL, "%s/plan.json", r->run_dir);
    json_t *plan = access(path, F_OK) ? NULL : json_document_load(path, &none);
    for (size_t length; *lines && !status; lines += length + (lines[length] == '\n')) {
        length = strcspn(lines, "\n");
        json_t *line = json_stringn(lines, length), *planned;
        bool known = false;
        size_t i;
        json_array_foreach (json_object_get(plan, "warnings"), i, planned)
            known = known || json_equal(planned, line);
        if (line && !known)
            status = run_warn(r, r->from.step, json_string_value(line), e);
        json_decref(line);
    }
    json_decref(plan);
    return status;
}

static int start_data_open_weights(const struct run *r, struct safetensors **weights,
                                   struct error *e)
{
    char path[PATH_MAX];

    *weights = NULL;
    file_path(path, NULL, "%s/model.safetensors", r->resumed_from);
    if (r->resumes)
        return safetensors_open(path, weights, e);
    return *r->init_path ? weights_open(r->init_path, path, weights, e) : 0;
}

/* The daemon compared the classes when it made the plan, but the data may have changed. */
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
        status = start_warn_lines(r, c.unknown, e);
    if (!status)
        status = start_warn_lines(r, c.remark, e);
    r->classes = class_names_to_text(c.train.list || !r->resumes ? &c.train : &c.weights);
    job_classes_clear(&c);
    safetensors_close(weights);
    return status;
}

static const char *const plan_keys[] = {"train_images", "global_batch", "train_steps",
                                        "warmup_steps", "peak_lr",      "start_lr"};
#define PLAN_KEYS (sizeof plan_keys / sizeof plan_keys[0])

/* A resumed run with a new plan replaces plan.json; the earlier attempt's folder keeps the old. */
static int start_data_check_against_stored_plan(const struct run *r, const char *path,
                                                const json_t *mine, struct error *e)
{
    char kept[PATH_MAX];
    json_t *stored = json_document_load(path, e);
    if (!stored)
        return -(int)e->code;
    size_t strict = r->resumes ? 1 : PLAN_KEYS; /* must be equal: only the number of images in a
                                                   resumed run, else all keys */
    size_t differs = 0;
    int status = 0;
    for (; differs < PLAN_KEYS; differs++) {
        double a = json_number_value(json_object_get(stored, plan_keys[differs]));
        double b = json_number_value(json_object_get(mine, plan_keys[differs]));
        if (!(fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)))) /* a stored plan has twelve digits */
            break;
    }
    if (differs < strict) {
        const char *key = plan_keys[differs];
        status = error_set(e, ERR_CONFLICT,
                           "%s has %s = %.12g, but the data now gives %.12g: the data set or the "
                           "job has changed since the plan was made; submit the job again",
                           path, key, json_number_value(json_object_get(stored, key)),
                           json_number_value(json_object_get(mine, key)));
    } else if (differs < PLAN_KEYS) {
        file_path(kept, NULL, "%s/plan-before.json", r->attempt_dir);
        status = json_file_write(kept, stored, e);
        if (!status)
            status = json_file_write(path, mine, e);
    }
    json_decref(stored);
    return status;
}

static int start_data_store_or_check_plan(const struct run *r, struct error *e)
{
    char plan_path[PATH_MAX], job_path[PATH_MAX];
    json_t *job = job_spec_to_json(r->spec), *plan = plan_to_json(r->plan);
    int status = 0;

    file_path(plan_path, NULL, "%s/plan.json", r->run_dir);
    file_path(job_path, NULL, "%s/job.json", r->run_dir);
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

static int start_data_report_new_numbers(struct run *r, struct error *e)
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

static int start_data_report_other_threads(struct run *r, struct error *e)
{
    char message[256];

    if (!r->resumes || r->from.threads == r->threads)
        return 0;
    snprintf(message, sizeof message,
             "resumed with %d thread%s a worker instead of %lld: sums are rounded in another "
             "order, so the weights will not be bit-identical to those of an uninterrupted run",
             r->threads, plural(r->threads), (long long)r->from.threads);
    return run_warn(r, r->from.step, message, e);
}

/* Of the whole training data. Images that cannot be read, which training reports, do not count.
 * Collective. */
static void start_count_labels(const struct run *r, double *counts, int64_t classes)
{
    int64_t ranks = r->world / r->part.of, rank = r->rank % ranks;
    int64_t images = dataset_images(r->train_data), end = images * (rank + 1) / ranks;
    struct dataset_image image;
    struct error e;

    for (int64_t i = images * rank / ranks; i < end; i++) {
        int64_t label = dataset_entry(r->train_data, i)->label;
        if (label < 0 && dataset_read(r->train_data, i, &image, &e) == 0) {
            label = image.label;
            dataset_image_release(&image);
        }
        if (label >= 0 && label < classes)
            counts[label]++;
        stall_progress_add(1);
    }
    traincomm_reduce(r->comm, TRAINCOMM_SUM, counts, (size_t)classes);
}

/* Turns the classes' numbers of images into images / (classes x images of the class), where classes
 * are those that have images. */
static int start_balance(struct run *r, double *weights, int64_t classes, struct error *e)
{
    double images = 0, least = INFINITY, most = 0;
    int64_t empty = 0, first_empty = 0;
    char message[160];

    for (int64_t c = 0; c < classes; c++) {
        images += weights[c];
        if (weights[c] == 0 && empty++ == 0)
            first_empty = c;
    }
    for (int64_t c = 0; c < classes; c++)
        if (weights[c] > 0) {
            weights[c] = images / ((double)(classes - empty) * weights[c]);
            least = fmin(least, weights[c]);
            most = fmax(most, weights[c]);
        }
    if (r->rank == 0)
        log_info("class_weights \"balanced\": from %.4g to %.4g", least, most);
    snprintf(message, sizeof message,
             "data.train has no images of %lld of the %lld classes, the first of them is %lld: "
             "class_weights \"balanced\" gives them 0",
             (long long)empty, (long long)classes, (long long)first_empty);
    return empty ? run_warn(r, r->from.step, message, e) : 0;
}

/* Collective */
static int start_weigh_classes(struct run *r, struct error *e)
{
    const struct job_spec *s = r->spec;

    if (s->mode == JOB_MODE_EVAL || s->class_weight_count == 0)
        return 0;
    model_weigh_classes(r->model, s->class_weights);
    if (!job_spec_balances(s))
        return 0;
    r->class_weights = xcalloc((size_t)s->model.classes, sizeof *r->class_weights);
    model_weigh_classes(r->model, r->class_weights);
    start_count_labels(r, r->class_weights, s->model.classes);
    return start_balance(r, r->class_weights, s->model.classes, e);
}

int start_data(struct run *r, struct error *e)
{
    struct plan_counts counts;

    r->part = (struct dataset_part){0, 1};
    if (r->spec->data.locality != JOB_LOCALITY_GLOBAL) /* mpirun numbers the ranks node by node */
        r->part = (struct dataset_part){r->rank / (int)r->spec->cluster.workers_per_node,
                                        (int)r->spec->cluster.nodes};
    int status = start_data_open_in_turn(r, e);
    if (status)
        return status;
    start_count_images(r, &counts);
    status = start_make_plan(r, &counts, e);
    if (!status && r->rank == 0) {
        const char *train = r->train_data ? dataset_remarks(r->train_data) : "";
        const char *eval = r->eval_data ? dataset_remarks(r->eval_data) : "";
        status = start_data_check_classes(r, e);
        if (!status)
            status = start_warn_lines(r, train, e);
        if (!status && strcmp(train, eval) != 0)
            status = start_warn_lines(r, eval, e);
    }
    if (!status)
        status = start_data_take_place(r, e);
    status = run_agree(r, status, e);
    if (!status && r->rank == 0)
        status = start_data_store_or_check_plan(r, e);
    if (!status)
        status = start_data_report_new_numbers(r, e);
    if (!status)
        status = start_data_report_other_threads(r, e);
    status = run_agree(r, status, e);
    return status ? status : run_agree(r, start_weigh_classes(r, e), e);
}
