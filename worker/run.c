#include "worker/run.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/dataset/plan_inputs.h"
#include "common/file.h"
#include "common/json.h"
#include "common/log.h"
#include "common/plan/replan.h"
#include "common/preset.h"
#include "worker/evaluate.h"
#include "worker/kernels/kind.h"
#include "worker/model/weights.h"
#include "worker/peak.h"
#include "worker/resume.h"
#include "worker/threads.h"
#include "worker/train.h"

static volatile sig_atomic_t stop_requested;

static void request_stop(int signal_number)
{
    (void)signal_number;
    stop_requested = 1;
}

void run_catch_signals(void)
{
    struct sigaction action = {.sa_handler = request_stop, .sa_flags = SA_RESTART};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
}

bool run_stop_requested(void)
{
    return stop_requested != 0;
}

/* ---- agreement */

int run_agree_on_stop(struct run *r, int status, bool *stop, struct error *e)
{
    struct traincomm_failure failure = {.code = -status};

    if (status)
        snprintf(failure.text, sizeof failure.text, "%s", e->text);
    int code = traincomm_agree(r->comm, stop, &failure);
    if (!code)
        return 0;
    r->failed_at.rank = failure.rank;
    memcpy(r->failed_at.host, failure.host, sizeof failure.host);
    return error_set(e, (enum error_code)code, "%s", failure.text);
}

int run_agree(struct run *r, int status, struct error *e)
{
    return run_agree_on_stop(r, status, NULL, e);
}

/* ---- start */

/* Rank 0 reads the document for all: the others' hosts need not see the file. */
static int share_document(struct run *r, const char *path, json_t **document, struct error *e)
{
    char *text = NULL;
    long long bytes = -1;
    json_t *value = NULL;
    int status = 0;

    if (r->rank == 0) {
        value = json_document_load(path, e);
        status = value ? 0 : -(int)e->code;
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
        text = malloc((size_t)bytes + 1);
    traincomm_broadcast(r->comm, text, (size_t)bytes, 0);
    if (r->rank != 0)
        value = json_document_parse(text, (size_t)bytes, e);
    free(text);
    *document = value;
    return value ? 0 : -(int)e->code;
}

static int refuse(const struct problems *problems, const char *path, enum error_code code,
                  struct error *e)
{
    char *text = problems_to_text(problems);
    int status = error_set(e, code, "%s: %s", path, text ? text : "not a valid job");
    free(text);
    return status;
}

static int parse_document(struct run *r, const char *path, const json_t *document, struct error *e)
{
    struct problems problems = {0}, unsupported = {0};
    int status = 0;

    r->spec = job_spec_parse(document, preset_lookup, NULL, &problems, &unsupported);
    if (!r->spec)
        status = refuse(&problems, path, ERR_INVALID, e);
    else if (unsupported.count > 0)
        status = refuse(&unsupported, path, ERR_UNSUPPORTED, e);
    problems_clear(&problems);
    problems_clear(&unsupported);
    return status;
}

/* A run that is resumed may have other workers than the job asks for; one that begins may not. */
static int fit_world(struct run *r, bool resumes, struct error *e)
{
    int64_t wanted = job_spec_world_size(r->spec);
    if (wanted == r->world)
        return 0;
    if (resumes)
        return replan_spec(r->spec, r->world, e);
    return error_set(e, ERR_INVALID,
                     "the job asks for %lld x %lld = %lld workers, but %d were started: "
                     "use mpirun -np %lld, or change cluster.nodes and cluster.workers_per_node",
                     (long long)r->spec->cluster.nodes,
                     (long long)r->spec->cluster.workers_per_node, (long long)wanted, r->world,
                     (long long)wanted);
}

static int read_job(struct run *r, const char *path, bool resumes, struct error *e)
{
    json_t *document = NULL;
    int status = share_document(r, path, &document, e);
    if (!status)
        status = parse_document(r, path, document, e);
    json_decref(document);
    if (!status)
        status = fit_world(r, resumes, e);
    return run_agree(r, status, e);
}

/* The event log is opened first, so that whatever fails afterwards is in it. */
static int open_run_dir(struct run *r, const struct run_options *options, struct error *e)
{
    char path[PATH_MAX];
    int status = 0;

    if (!realpath(options->run_dir, r->run_dir))
        snprintf(r->run_dir, sizeof r->run_dir, "%s", options->run_dir);
    if ((size_t)snprintf(r->attempt_dir, sizeof r->attempt_dir, "%s/attempt-%d", r->run_dir,
                         options->attempt) >= sizeof r->attempt_dir ||
        (size_t)snprintf(path, sizeof path, "%s/events.jsonl", r->attempt_dir) >= sizeof path)
        status = error_set(e, ERR_USAGE, "the path %s is too long", options->run_dir);
    if (!status && r->rank == 0)
        status = file_make_dirs(r->attempt_dir, e);
    if (!status)
        status = report_create(r->rank == 0 ? path : NULL, &r->report, e);
    return run_agree(r, status, e);
}

static int find_checkpoint(struct run *r, const char *from, struct error *e)
{
    int status = 0;

    if (!from)
        return 0;
    if (r->spec->mode == JOB_MODE_EVAL)
        status =
            error_set(e, ERR_USAGE, "--resume is for mode train; mode eval has nothing to resume");
    else if (r->rank == 0)
        status = resume_find(r->run_dir, from, r->spec, r->resumed_from, &r->from, r->warnings, e);
    status = run_agree(r, status, e);
    if (status)
        return status;
    traincomm_broadcast(r->comm, r->resumed_from, sizeof r->resumed_from, 0);
    traincomm_broadcast(r->comm, &r->from, sizeof r->from, 0);
    r->resumes = r->resumed_from[0] != '\0';
    return 0;
}

static int fill_model(struct run *r, struct error *e)
{
    char path[PATH_MAX + 32];

    if (r->resumes) {
        snprintf(path, sizeof path, "%s/model.safetensors", r->resumed_from);
        return model_load(r->model, path, e);
    }
    model_init(r->model, r->spec->seed);
    return r->spec->model.init ? model_load(r->model, r->spec->model.init, e) : 0;
}

/* Rank 0 measures, or remembers, for all; a run that goes on computes as it did before. */
static void choose_convolutions(struct run *r, const struct model_config *config)
{
    char problem[256] = "";

    if (r->resumes) {
        r->tuning = r->from.tuning;
        return;
    }
    if (!r->spec->model.winograd)
        return;
    if (r->rank == 0)
        model_tune(config, &r->tuning, problem);
    traincomm_broadcast(r->comm, &r->tuning, sizeof r->tuning, 0);
    if (problem[0])
        json_array_append_new(
            r->warnings,
            json_sprintf("which convolutions go by Winograd is measured at each start, because it "
                         "cannot be remembered: %s",
                         problem));
}

static int build_model(struct run *r, struct error *e)
{
    const struct job_spec *s = r->spec;
    struct model_config config = {
        .arch = arch_find(s->model.arch),
        .stem = s->model.stem,
        .classes = (int)s->model.classes,
        .image_size = (int)s->model.image_size,
        .batch = (int)(s->mode == JOB_MODE_EVAL ? s->eval.batch : s->batch_per_worker),
        .inference = s->mode == JOB_MODE_EVAL,
        .threads = r->threads,
        .bn_momentum = 1.0 - s->model.bn_decay,
        .zero_init_residual = s->model.zero_init_residual,
        .label_smoothing = s->optimizer.label_smoothing,
        .tuning = &r->tuning,
    };
    choose_convolutions(r, &config);
    int status = model_create(&config, &r->model, e);
    if (!status && r->rank == 0)
        status = fill_model(r, e);
    return run_agree(r, status, e);
}

static void broadcast_model(struct run *r)
{
    traincomm_broadcast(r->comm, model_params(r->model),
                        model_param_count(r->model) * sizeof(float), 0);
    traincomm_broadcast(r->comm, model_stats(r->model), model_stat_count(r->model) * sizeof(float),
                        0);
    model_params_changed(r->model);
}

static int open_data(const char *path, enum dataset_role role, struct dataset_part part,
                     struct dataset **data, struct error *e)
{
    if (!path || strcmp(path, "synthetic") == 0)
        return 0;
    int status = dataset_open_part(path, role, part, data, e);
    if (!status)
        dataset_keep_index(*data);
    return status;
}

static int open_both(struct run *r, struct error *e)
{
    const struct dataset_part whole = {0, 1};
    int status = 0;

    if (r->spec->mode == JOB_MODE_TRAIN)
        status = open_data(r->spec->data.train, DATASET_TRAIN, r->part, &r->train_data, e);
    if (!status)
        status = open_data(r->spec->data.eval, DATASET_EVAL, whole, &r->eval_data, e);
    return status;
}

/* Rank 0 first, then one rank of each other machine, then all: so that an index that has to be made
 * is made once, whether the data lie on a shared disk or on each machine's own. Collective. */
static int open_in_turn(struct run *r, struct error *e)
{
    int mine = r->rank == 0 ? 0 : traincomm_host_rank(r->comm) == 0 ? 1 : 2, status = 0;

    for (int turn = 0; turn < 3 && !status; turn++) {
        if (turn == mine)
            status = open_both(r, e);
        status = run_agree(r, status, e);
    }
    return status;
}

static const char *const plan_keys[] = {"train_images", "global_batch", "train_steps",
                                        "warmup_steps"};
#define PLAN_KEYS (sizeof plan_keys / sizeof plan_keys[0])

/* Compares the first keys of two plans. Returns the first that differs, or keys. */
static size_t first_difference(const json_t *stored, const json_t *mine, size_t keys)
{
    size_t i = 0;
    while (i < keys &&
           json_equal(json_object_get(stored, plan_keys[i]), json_object_get(mine, plan_keys[i])))
        i++;
    return i;
}

static int refuse_plan(const char *path, const char *key, const json_t *stored, const json_t *mine,
                       struct error *e)
{
    return error_set(e, ERR_CONFLICT,
                     "%s says %s = %lld, but the data now give %lld: the data set or the "
                     "job changed since the plan was made; submit the job again",
                     path, key, (long long)json_integer_value(json_object_get(stored, key)),
                     (long long)json_integer_value(json_object_get(mine, key)));
}

/* A resumed run may go by another plan (on other workers): plan.json is then the one in force, and
 * the attempt's folder keeps the one before it. */
static int replace_plan(const struct run *r, const char *path, const json_t *stored,
                        const json_t *mine, struct error *e)
{
    char kept[PATH_MAX + 32];

    snprintf(kept, sizeof kept, "%s/plan-before.json", r->attempt_dir);
    int status = json_file_write(kept, stored, e);
    return status ? status : json_file_write(path, mine, e);
}

static int check_against_stored_plan(const struct run *r, const char *path, const json_t *mine,
                                     struct error *e)
{
    json_t *stored = json_document_load(path, e);
    if (!stored)
        return -(int)e->code;
    size_t strict = r->resumes ? 1 : PLAN_KEYS; /* the number of images */
    size_t differs = first_difference(stored, mine, PLAN_KEYS);
    int status = 0;
    if (differs < strict)
        status = refuse_plan(path, plan_keys[differs], stored, mine, e);
    else if (differs < PLAN_KEYS)
        status = replace_plan(r, path, stored, mine, e);
    json_decref(stored);
    return status;
}

static int store_or_check_plan(const struct run *r, struct error *e)
{
    char plan_path[PATH_MAX + 16], job_path[PATH_MAX + 16];
    json_t *job = job_spec_to_json(r->spec), *plan = plan_to_json(r->plan);
    int status = 0;

    snprintf(plan_path, sizeof plan_path, "%s/plan.json", r->run_dir);
    snprintf(job_path, sizeof job_path, "%s/job.json", r->run_dir);
    if (access(plan_path, F_OK) == 0) {
        status = check_against_stored_plan(r, plan_path, plan, e);
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

/* Ranks are numbered node by node, as mpirun places them. */
static struct dataset_part part_of_rank(const struct run *r)
{
    int workers = (int)r->spec->cluster.workers_per_node;

    if (r->spec->data.locality == JOB_LOCALITY_GLOBAL)
        return (struct dataset_part){0, 1};
    return (struct dataset_part){r->rank / workers, (int)r->spec->cluster.nodes};
}

/* Of all nodes: with data.locality node each rank has opened its node's part. Collective. */
static void count_images(const struct run *r, struct plan_counts *counts)
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

static int check_image_count(const struct run *r, const struct plan_counts *counts, struct error *e)
{
    if (!r->train_data || r->plan->train_images <= counts->train.images)
        return 0;
    return error_set(e, ERR_INVALID,
                     "data.train_images is %lld, but %s holds only %lld images: leave "
                     "train_images out to have them counted",
                     (long long)r->plan->train_images, r->spec->data.train,
                     (long long)counts->train.images);
}

static int make_plan(struct run *r, const struct plan_counts *counts, struct error *e)
{
    struct plan_inputs inputs = {0};
    struct problems problems = {0};
    int status = plan_inputs_of_counts(r->spec, counts, &inputs, e);
    if (status)
        return status;
    r->plan = plan_make(r->spec, &inputs, &problems);
    if (!r->plan)
        status = refuse(&problems, "plan", ERR_INVALID, e);
    problems_clear(&problems);
    if (!status)
        status = check_image_count(r, counts, e);
    return status;
}

static int take_place(struct run *r, struct error *e)
{
    const struct run_state *from = &r->from;

    if (!r->resumes)
        return 0;
    if (from->train_images != r->plan->train_images)
        return error_set(e, ERR_CONFLICT,
                         "%s is of a run on %lld training images, here are %lld: the data set or "
                         "the job changed",
                         r->resumed_from, (long long)from->train_images,
                         (long long)r->plan->train_images);
    int64_t schedule_step;
    replan_place(from->epoch, from->epoch_images, r->plan, &schedule_step, &r->image_shift);
    r->step_shift = schedule_step - from->step;
    return 0;
}

/* A `warning` with the old and new numbers. */
static int say_new_numbers(struct run *r, struct error *e)
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
             r->world, r->world == 1 ? "" : "s", (long long)from->world_size,
             (long long)plan->global_batch, (long long)r->spec->accumulate_steps,
             (long long)r->spec->batch_per_worker, (long long)from->global_batch, plan->peak_lr,
             from->peak_lr, (long long)(plan->train_steps > done ? plan->train_steps - done : 0),
             (long long)plan->train_steps);
    return run_warn(r, from->step, message, e);
}

static int say_other_threads(struct run *r, struct error *e)
{
    char message[256];

    if (!r->resumes || r->from.threads == r->threads)
        return 0;
    snprintf(
        message, sizeof message,
        "resumed with %d thread%s a worker instead of %lld: sums are rounded in another order, "
        "so the weights will not be bit for bit those of an undisturbed run",
        r->threads, r->threads == 1 ? "" : "s", (long long)r->from.threads);
    return run_warn(r, r->from.step, message, e);
}

static int prepare_data(struct run *r, struct error *e)
{
    struct plan_counts counts;

    r->part = part_of_rank(r);
    int status = open_in_turn(r, e);
    if (status)
        return status;
    count_images(r, &counts);
    status = make_plan(r, &counts, e);
    if (!status)
        status = take_place(r, e);
    status = run_agree(r, status, e);
    if (!status && r->rank == 0)
        status = store_or_check_plan(r, e);
    if (!status)
        status = say_new_numbers(r, e);
    if (!status)
        status = say_other_threads(r, e);
    return run_agree(r, status, e);
}

static int say_run_start(struct run *r, struct error *e)
{
    char host[64] = "", tuning[TUNING_TEXT_BYTES];
    gethostname(host, sizeof host - 1);
    double now = clock_now();
    r->run_started = r->resumes && r->from.run_started < now ? r->from.run_started : now;
    r->started = clock_monotonic() - (now - r->run_started);
    report_begin(r->report, EVENT_RUN_START);
    report_text(r->report, "mode", r->spec->mode == JOB_MODE_EVAL ? "eval" : "train");
    report_text(r->report, "arch", r->spec->model.arch);
    report_int(r->report, "world_size", r->world);
    report_int(r->report, "threads_per_worker", r->threads);
    report_text(r->report, "host", host);
    report_text(r->report, "kernels", kernels_kind());
    report_int(r->report, "seed", r->spec->seed);
    model_tuning_to_text(&r->tuning, tuning);
    report_text(r->report, "winograd", tuning);
    report_int(r->report, "memory_bytes_per_worker", (int64_t)model_memory_bytes(r->model));
    if (r->resumes) {
        report_text(r->report, "resumed_from", r->resumed_from);
        report_int(r->report, "resumed_step", r->from.step);
    }
    int status = report_end(r->report, e);
    for (size_t i = 0; i < json_array_size(r->warnings) && !status; i++)
        status = run_warn(r, r->from.step, json_string_value(json_array_get(r->warnings, i)), e);
    return status;
}

int run_warn(struct run *r, int64_t step, const char *message, struct error *e)
{
    if (r->rank == 0)
        log_warning("%s", message);
    report_begin(r->report, EVENT_WARNING);
    report_int(r->report, "step", step);
    report_text(r->report, "message", message);
    return report_end(r->report, e);
}

double run_epoch(const struct run *r, int64_t step)
{
    return (double)(step + r->step_shift) / (double)r->plan->steps_per_epoch;
}

int run_create(const struct run_options *options, struct traincomm *comm, struct run *r,
               struct error *e)
{
    memset(r, 0, sizeof *r);
    r->comm = comm;
    r->rank = traincomm_rank(comm);
    r->world = traincomm_size(comm);
    r->phase = "start";
    r->warnings = json_array();
    int status = open_run_dir(r, options, e);
    if (!status)
        status = read_job(r, options->job_file, options->resume != NULL, e);
    if (!status)
        status = find_checkpoint(r, options->resume, e);
    if (status)
        return status;
    r->threads = threads_of_rank(r->comm, (int)r->spec->cluster.threads_per_worker);
    r->measures_peak = options->measure_peak;
    r->stall_seconds = options->stall_seconds;
    if (r->measures_peak)
        r->sgemm_gflops = peak_sgemm_gflops(r->comm, r->threads);
    status = build_model(r, e);
    if (status)
        return status;
    broadcast_model(r);
    /* Time to train counts from just before the first touch of the data (MLPerf training rules). */
    traincomm_barrier(r->comm);
    status = run_agree(r, say_run_start(r, e), e);
    if (status)
        return status;
    r->phase = "data";
    return prepare_data(r, e);
}

int run_execute(struct run *r, struct error *e)
{
    return r->spec->mode == JOB_MODE_EVAL ? evaluate_only(r, e) : train(r, e);
}

void run_report_failure(struct run *r, const struct error *e)
{
    struct error ignored;

    if (r->rank != 0)
        return;
    log_error("rank %d on %s, phase %s: %s", r->failed_at.rank, r->failed_at.host, r->phase,
              e->text);
    if (!r->report)
        return;
    report_begin(r->report, EVENT_FAILED);
    report_int(r->report, "rank", r->failed_at.rank);
    report_text(r->report, "host", r->failed_at.host);
    report_text(r->report, "phase", r->phase);
    report_text(r->report, "signal", NULL);
    report_text(r->report, "reason", e->text);
    report_end(r->report, &ignored);
}

void run_destroy(struct run *r)
{
    dataset_close(r->train_data);
    dataset_close(r->eval_data);
    model_destroy(r->model);
    plan_destroy(r->plan);
    job_spec_destroy(r->spec);
    report_destroy(r->report);
    json_decref(r->warnings);
}
