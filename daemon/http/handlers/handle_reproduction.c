/* Checks whether a job that reproduces another has bit-identical results: by the digests of the
 * results after the same number of steps, otherwise by the stored numbers of the steps that both
 * have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/job_options.h"
#include "common/json.h"
#include "common/run/provenance.h"
#include "common/xalloc.h"
#include "daemon/http/handlers/job_provenance.h"
#include "daemon/store/metric.h"

#define STEPS_AT_A_TIME 4096

struct step_page {
    size_t count;
    int64_t last;
    int64_t to; /* ignore later steps */
    struct {
        int64_t step;
        double loss, grad_norm;
    } steps[STEPS_AT_A_TIME];
};

static int reproduction_metric_place(const char *name)
{
    int i = 0;
    while (event_metric_at((size_t)i) && strcmp(event_metric_at((size_t)i)->name, name) != 0)
        i++;
    return i;
}

static void reproduction_take_step(void *context, const struct store_metric_part *part)
{
    struct step_page *page = context;

    if (part->step > page->to)
        return;
    size_t i = page->count++;
    page->steps[i].step = page->last = part->step;
    page->steps[i].loss = part->of[reproduction_metric_place("loss")].sum;
    page->steps[i].grad_norm = part->of[reproduction_metric_place("grad_norm")].sum;
}

static int reproduction_read_page(struct store *s, int64_t job, int64_t from,
                                  struct step_page *page, struct error *e)
{
    page->count = 0;
    return store_metric_each(s, job, from, STEPS_AT_A_TIME, reproduction_take_step, page, e);
}

/* Returns 0 if they are equal. */
static int64_t reproduction_differs_in(const struct step_page *a, const struct step_page *b)
{
    size_t count = a->count < b->count ? a->count : b->count;

    for (size_t i = 0; i < count; i++) {
        if (a->steps[i].step != b->steps[i].step)
            return a->steps[i].step < b->steps[i].step ? a->steps[i].step : b->steps[i].step;
        if (a->steps[i].loss != b->steps[i].loss || a->steps[i].grad_norm != b->steps[i].grad_norm)
            return a->steps[i].step;
    }
    if (a->count == b->count)
        return 0;
    return a->count > b->count ? a->steps[count].step : b->steps[count].step;
}

/* Sets *step to the first difference up to step `to`; 0 if there is none. */
static int reproduction_first_difference_of(struct store *s, int64_t one, int64_t other, int64_t to,
                                            int64_t *step, struct error *e)
{
    struct step_page *pages = xcalloc(2, sizeof *pages);
    int64_t from = 0;
    bool failed;

    *step = 0;
    pages[0].to = pages[1].to = to;
    do {
        failed = reproduction_read_page(s, one, from, &pages[0], e) ||
                 reproduction_read_page(s, other, from, &pages[1], e);
        if (!failed)
            *step = reproduction_differs_in(&pages[0], &pages[1]);
        from = pages[0].last + 1;
    } while (!failed && !*step && pages[0].count == STEPS_AT_A_TIME);
    free(pages);
    return failed ? -(int)e->code : 0;
}

/* Compares evaluations by step up to `to`; null if they have none in common. Steals both
 * references. */
static json_t *reproduction_same_evaluations(json_t *a, json_t *b, int64_t to)
{
    json_t *same = NULL;

    for (size_t i = 0, j = 0; i < json_array_size(a) && j < json_array_size(b);) {
        json_t *one = json_array_get(a, i), *other = json_array_get(b, j);
        int64_t step = json_get_integer(one, "step", 0), then = json_get_integer(other, "step", 0);
        i += step <= then;
        j += then <= step;
        if (step != then || step > to)
            continue;
        json_object_del(one, "t");
        json_object_del(other, "t");
        if (!same || !json_equal(one, other))
            same = json_boolean(json_equal(one, other));
    }
    json_decref(a);
    json_decref(b);
    return same ? same : json_null();
}

enum verdict { RUNNING, SAME, SAME_SO_FAR, DIFFERS, UNKNOWN };
static const char *const verdicts[] = {
    [RUNNING] = "running", [SAME] = "same",       [SAME_SO_FAR] = "same_so_far",
    [DIFFERS] = "differs", [UNKNOWN] = "unknown",
};

struct comparison {
    const struct job_provenance *of, *copy;
    json_t *weights, *losses, *evaluations; /* true, false, or null if unknown */
    int64_t first_step;                     /* first step that differs; 0: none or unknown */
    int64_t last_step; /* if one ended before the other, the last step of both; otherwise -1 */
};

static enum verdict reproduction_verdict_of(const struct comparison *c)
{
    const json_t *const same[] = {c->weights, c->losses, c->evaluations};
    bool known = false;

    if (!job_state_is_final(c->copy->job.state) || !job_state_is_final(c->of->job.state))
        return RUNNING;
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        if (json_is_false(same[i]))
            return DIFFERS;
        known = known || json_is_true(same[i]);
    }
    return !known ? UNKNOWN : c->last_step < 0 ? SAME : SAME_SO_FAR;
}

/* Returns null if one of them has no such digest. */
static json_t *reproduction_same_digest(const struct comparison *c, const char *key)
{
    const char *one = json_get_text(json_object_get(c->of->attempt, "result"), key, NULL);
    const char *other = json_get_text(json_object_get(c->copy->attempt, "result"), key, NULL);

    return one && other ? json_boolean(strcmp(one, other) == 0) : json_null();
}

static bool reproduction_has_digests(const struct job_provenance *p)
{
    const json_t *result = json_object_get(p->attempt, "result");

    return json_get_integer(result, "steps", -1) == p->job.step;
}

static int reproduction_compare_digests(struct store *s, struct comparison *c, struct error *e)
{
    c->last_step = -1;
    c->weights = reproduction_same_digest(c, "weights");
    c->losses = reproduction_same_digest(c, "losses");
    c->evaluations = reproduction_same_digest(c, "evaluations");
    return reproduction_verdict_of(c) == DIFFERS
               ? reproduction_first_difference_of(s, c->of->job.id, c->copy->job.id, INT64_MAX,
                                                  &c->first_step, e)
               : 0;
}

static int reproduction_compare_so_far(struct store *s, struct comparison *c, struct error *e)
{
    int64_t of = c->of->job.id, copy = c->copy->job.id, to = c->last_step;
    json_t *evals[2] = {NULL, NULL};
    int status = reproduction_first_difference_of(s, of, copy, to, &c->first_step, e);

    if (!status)
        status = store_eval_list(s, of, &evals[0], e);
    if (!status)
        status = store_eval_list(s, copy, &evals[1], e);
    c->weights = json_null();
    c->losses = to > 0 ? json_boolean(c->first_step == 0) : json_null();
    c->evaluations = reproduction_same_evaluations(evals[0], evals[1], to);
    return status;
}

static int reproduction_compare_runs(struct store *s, struct comparison *c, struct error *e)
{
    const struct store_job *of = &c->of->job, *copy = &c->copy->job;
    bool trained = of->train_steps > 0 && copy->train_steps > 0;

    if (!trained || (reproduction_has_digests(c->of) && reproduction_has_digests(c->copy) &&
                     of->step == copy->step))
        return reproduction_compare_digests(s, c, e);
    c->last_step = of->step < copy->step ? of->step : copy->step;
    return reproduction_compare_so_far(s, c, e);
}

#define WORDS_BYTES 256

/* Formats as "job 4 was cancelled after step 287", for the job that ended first. */
static void reproduction_words_of_end(const struct comparison *c, char words[WORDS_BYTES])
{
    static const char *const ends[] = {
        [JOB_SUCCEEDED] = "ended", [JOB_FAILED] = "failed", [JOB_CANCELLED] = "was cancelled"};
    const struct store_job *of = &c->of->job, *copy = &c->copy->job;
    bool first =
        of->step < copy->step || (of->step == copy->step && !reproduction_has_digests(c->of));
    const struct store_job *job = first ? of : copy;
    char step[64] = "before its first step";

    if (job->step > 0)
        snprintf(step, sizeof step, "after step %lld", (long long)job->step);
    snprintf(words, WORDS_BYTES, "job %lld %s %s", (long long)job->id, ends[job->state], step);
}

static void reproduction_words_of(const struct comparison *c, enum verdict verdict,
                                  char words[WORDS_BYTES])
{
    long long of = c->of->job.id, copy = c->copy->job.id;
    char end[WORDS_BYTES] = "one of them has no result";

    if (verdict != RUNNING && c->last_step >= 0)
        reproduction_words_of_end(c, end);
    if (verdict == RUNNING && job_state_is_final(c->copy->job.state))
        snprintf(words, WORDS_BYTES, "job %lld, which job %lld reproduces, has not ended", of,
                 copy);
    else if (verdict == RUNNING)
        snprintf(words, WORDS_BYTES, "job %lld, which reproduces job %lld, has not ended", copy,
                 of);
    else if (verdict == SAME_SO_FAR)
        snprintf(words, WORDS_BYTES, "%.200s; up to there both are bit-identical", end);
    else if (verdict == UNKNOWN)
        snprintf(words, WORDS_BYTES, "it is unknown whether job %lld reproduces job %lld: %.150s",
                 copy, of, end);
    else
        snprintf(words, WORDS_BYTES, "job %lld %s job %lld%s", copy,
                 verdict == SAME ? "reproduces" : "does not reproduce", of,
                 verdict == SAME ? " bit by bit" : "");
}

/* Lists changes of the reproduced document that may change bits. */
static json_t *reproduction_document_differences(const struct job_provenance *of,
                                                 const struct job_provenance *copy)
{
    json_t *differences = json_array(), *pinned = json_array();
    json_t *document = job_repro_document(of, pinned);
    json_t *documents[] = {document, (json_t *)store_job_spec(&copy->job)};

    json_differences(documents, 2, differences);
    for (size_t i = json_array_size(differences); i-- > 0;)
        if (job_option_is_apart(json_get_text(json_array_get(differences, i), "pointer", "")))
            json_array_remove(differences, i);
    json_decref(document);
    json_decref(pinned);
    return differences;
}

static json_t *reproduction_comparison_to_json(const struct comparison *c)
{
    const json_t *both[] = {c->of->attempt, c->copy->attempt};
    enum verdict verdict = reproduction_verdict_of(c);
    bool ended = verdict != RUNNING;
    char words[WORDS_BYTES];

    reproduction_words_of(c, verdict, words);
    return json_pack(
        "{s:I, s:I, s:s, s:s, s:s, s:{s:O?, s:O?, s:O?}, s:o, s:o, s:o, s:o}", "job",
        (json_int_t)c->copy->job.id, "reproduces", (json_int_t)c->of->job.id, "state",
        job_state_name(c->copy->job.state), "verdict", verdicts[verdict], "words", words, "same",
        "weights", c->weights, "losses", c->losses, "evaluations", c->evaluations, "first_step",
        json_integer_or_null(c->first_step > 0, (json_int_t)c->first_step), "last_step",
        json_integer_or_null(ended && c->last_step >= 0, (json_int_t)c->last_step), "differences",
        provenance_differences(both, 2), "documents",
        reproduction_document_differences(c->of, c->copy));
}

static int reproduction_reply_comparison(const struct request *q, const struct job_provenance *of,
                                         const struct job_provenance *copy, struct reply *r,
                                         struct error *e)
{
    struct comparison c = {.of = of, .copy = copy};
    int status = reproduction_verdict_of(&c) == RUNNING
                     ? 0
                     : reproduction_compare_runs(q->app->store, &c, e);

    if (!status)
        status = reply_json(r, 200, reproduction_comparison_to_json(&c), e);
    json_decref(c.weights);
    json_decref(c.losses);
    json_decref(c.evaluations);
    return status;
}

int handle_reproduction(const struct request *q, struct reply *r, struct error *e)
{
    struct job_provenance copy, of = {0};
    int status = job_provenance_load(q, q->id, &copy, e);

    if (status)
        return status;
    int64_t id = json_integer_value(json_object_get(store_job_spec(&copy.job), "reproduces"));
    if (id < 1)
        status = error_set(
            e, ERR_NOT_FOUND,
            "job %lld does not reproduce another job; trainctl reproduce %lld reruns it, as does "
            "POST /v1/jobs of the document in GET /v1/jobs/%lld/pinned",
            (long long)q->id, (long long)q->id, (long long)q->id);
    if (!status)
        status = job_provenance_load(q, id, &of, e);
    if (!status)
        status = reproduction_reply_comparison(q, &of, &copy, r, e);
    job_provenance_clear(&of);
    job_provenance_clear(&copy);
    return status;
}
