/* GET /v1/jobs/ID/reproduction: whether a job that repeats another has come to the same bits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/run/provenance.h"
#include "daemon/http/handlers/provenance/pinned.h"

#define STEPS_AT_A_TIME 4096

/* ---- the first step that differs, by the numbers that the store keeps of each */

struct step_page {
    size_t count;
    int64_t last;
    struct {
        int64_t step;
        double loss, grad_norm;
    } steps[STEPS_AT_A_TIME];
};

static int metric_place(const char *name)
{
    int i = 0;
    while (event_metric_at((size_t)i) && strcmp(event_metric_at((size_t)i)->name, name) != 0)
        i++;
    return i;
}

static void take_step(void *context, const struct store_metric_part *part)
{
    struct step_page *page = context;
    size_t i = page->count++;

    page->steps[i].step = page->last = part->step;
    page->steps[i].loss = part->of[metric_place("loss")].sum;
    page->steps[i].grad_norm = part->of[metric_place("grad_norm")].sum;
}

static int read_page(struct store *s, int64_t job, int64_t from, struct step_page *page,
                     struct error *e)
{
    page->count = 0;
    return store_metric_each(s, job, from, STEPS_AT_A_TIME, take_step, page, e);
}

/* Of two pages that begin at one step: 0: none differs. */
static int64_t differs_in(const struct step_page *a, const struct step_page *b)
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

static int first_difference_of(struct store *s, int64_t one, int64_t other, int64_t *step,
                               struct error *e)
{
    struct step_page *pages = calloc(2, sizeof *pages);
    int status = pages ? 0 : error_set(e, ERR_NO_MEMORY, "no memory to compare two jobs");

    *step = 0;
    for (int64_t from = 0; !status; from = pages[0].last + 1) {
        status = read_page(s, one, from, &pages[0], e);
        if (!status)
            status = read_page(s, other, from, &pages[1], e);
        if (!status)
            *step = differs_in(&pages[0], &pages[1]);
        if (*step || pages[0].count < STEPS_AT_A_TIME)
            break;
    }
    free(pages);
    return status;
}

/* ---- the verdict */

/* true, false, or null where one of them has no such digest. */
static json_t *same_digest(const struct job_provenance *a, const struct job_provenance *b,
                           const char *key)
{
    const char *one = json_get_text(json_object_get(a->attempt, "result"), key, NULL);
    const char *other = json_get_text(json_object_get(b->attempt, "result"), key, NULL);

    return one && other ? json_boolean(strcmp(one, other) == 0) : json_null();
}

static const char *verdict_of(const struct job_provenance *copy, const json_t *same)
{
    const char *key;
    json_t *value;
    bool known = false;

    if (!job_state_is_final(copy->job.state))
        return "running";
    json_object_foreach ((json_t *)same, key, value) {
        if (json_is_false(value))
            return "differs";
        known = known || json_is_true(value);
    }
    return known ? "same" : "unknown";
}

/* Keys that do not bear on the bits. */
static json_t *without_words(json_t *document)
{
    static const char *const apart[] = {"name",       "preset",  "priority",
                                        "reproduces", "restart", "log"};

    for (size_t i = 0; i < sizeof apart / sizeof apart[0]; i++)
        json_object_del(document, apart[i]);
    return document;
}

/* What somebody changed of the document that repeats the job. */
static json_t *document_differences(const struct job_provenance *of,
                                    const struct job_provenance *copy)
{
    json_t *differences = json_array(), *pinned = json_array();
    json_t *documents[] = {without_words(pinned_document(of, pinned)),
                           without_words(json_loads(copy->job.spec, 0, NULL))};

    json_differences(documents, 2, differences);
    json_decref(documents[0]);
    json_decref(documents[1]);
    json_decref(pinned);
    return differences;
}

static int reply_comparison(const struct request *q, const struct job_provenance *of,
                            const struct job_provenance *copy, struct reply *r, struct error *e)
{
    const json_t *both[] = {of->attempt, copy->attempt};
    json_t *same = json_pack("{s:o, s:o, s:o}", "weights", same_digest(of, copy, "weights"),
                             "losses", same_digest(of, copy, "losses"), "evaluations",
                             same_digest(of, copy, "evaluations"));
    const char *verdict = verdict_of(copy, same);
    int64_t step = 0;
    int status = strcmp(verdict, "differs") == 0
                     ? first_difference_of(q->app->store, of->job.id, copy->job.id, &step, e)
                     : 0;

    if (status) {
        json_decref(same);
        return status;
    }
    return reply_json(
        r, 200,
        json_pack("{s:I, s:I, s:s, s:s, s:o, s:o, s:o, s:o}", "job", (json_int_t)copy->job.id,
                  "reproduces", (json_int_t)of->job.id, "state", job_state_name(copy->job.state),
                  "verdict", verdict, "same", same, "first_step",
                  json_integer_or_null(step > 0, (json_int_t)step), "differences",
                  provenance_differences(both, 2), "documents", document_differences(of, copy)),
        e);
}

int handle_reproduction(const struct request *q, struct reply *r, struct error *e)
{
    struct job_provenance copy, of = {0};
    int status = job_provenance_load(q, q->id, &copy, e);

    if (status)
        return status;
    json_t *spec = json_loads(copy.job.spec, 0, NULL);
    int64_t id = json_integer_value(json_object_get(spec, "reproduces"));
    json_decref(spec);
    if (id < 1)
        status =
            error_set(e, ERR_NOT_FOUND,
                      "job %lld reproduces no other; trainctl reproduce %lld repeats it, as does "
                      "POST /v1/jobs of the document in GET /v1/jobs/%lld/pinned",
                      (long long)q->id, (long long)q->id, (long long)q->id);
    if (!status)
        status = job_provenance_load(q, id, &of, e);
    if (!status)
        status = reply_comparison(q, &of, &copy, r, e);
    job_provenance_clear(&of);
    job_provenance_clear(&copy);
    return status;
}
