#include "daemon/http/handlers/archive/import_documents.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/dataset/plan_inputs.h"
#include "common/job/job_document.h"
#include "common/job/recipe/preset.h"
#include "common/json.h"
#include "common/system/file.h"
#include "daemon/job/document.h"

#define LINE_LIMIT_BYTES (512 * 1024) /* of an event; workers' are half of it at most */
/* They are stored in one transaction, which holds up every other writer, by 20 s at most. ImageNet
 * in 90 epochs of batches of 256 is 450,000 steps. */
#define EVENTS_MOST       500000
#define EVENTS_BYTES_MOST (256 * 1024 * 1024)
#define T_MOST            1e11 /* Unix seconds */
#define IMAGES_MOST       1e12

static json_t *read_document(const char *folder, const char *name, struct error *e)
{
    char path[PATH_MAX];

    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) {
        error_set(e, ERR_INTERNAL, "the path of the run directory is too long");
        return NULL;
    }
    json_t *document = json_document_load(path, e);
    if (!document)
        error_set(e, ERR_INVALID, "%s of the archive cannot be read: %s", name,
                  e->code == ERR_NOT_FOUND ? "it is not there"
                  : strrchr(e->text, '/')  ? "it is no JSON object"
                                           : e->text);
    return document;
}

/* ---- job.json */

static int read_spec(const char *folder, struct import_documents *d, struct error *e)
{
    struct problems problems = {0}, unsupported = {0};
    json_t *document = read_document(folder, "job.json", e);

    if (!document)
        return -(int)e->code;
    d->spec = job_spec_parse(document, preset_lookup, NULL, &problems, &unsupported);
    json_decref(document);
    if (!d->spec) {
        char *text = problems_to_text(&problems);
        error_set(e, ERR_INVALID,
                  "job.json of the archive is no job document of this version: %.600s",
                  text ? text : "");
        free(text);
    } else {
        d->spec_text = job_json_text(job_spec_to_json(d->spec));
    }
    problems_clear(&problems);
    problems_clear(&unsupported);
    if (!d->spec)
        return -(int)e->code;
    return d->spec_text ? 0 : error_set(e, ERR_NO_MEMORY, "no memory for the job document");
}

/* ---- plan.json */

/* Every value has the type that ours has there; numbers and nulls may stand for each other, as what
 * is predicted depends on what was measured. *at: the key that is wrong. */
static bool has_shape(const json_t *theirs, const json_t *ours, const char **at)
{
    const char *key;
    json_t *value;

    if (json_is_object(theirs) && json_is_object(ours)) {
        json_object_foreach ((json_t *)theirs, key, value) {
            const json_t *own = json_object_get(ours, key);
            if (own && !has_shape(value, own, at)) {
                *at = key;
                return false;
            }
        }
        return true;
    }
    bool plain = json_is_number(theirs) || json_is_null(theirs) || json_is_string(theirs);
    return json_typeof(theirs) == json_typeof(ours) || json_is_null(theirs) ||
           (json_is_null(ours) && (plain || json_is_object(theirs))) ||
           (json_is_number(theirs) && json_is_number(ours));
}

/* Keys that this version's plans do not have are left out. */
static json_t *known_keys(const json_t *theirs, const json_t *ours)
{
    json_t *kept = json_object(), *value;
    const char *key;

    json_object_foreach ((json_t *)ours, key, value) {
        json_t *own = json_object_get(theirs, key);
        json_object_set(kept, key, own ? own : value);
    }
    return kept;
}

static int make_own_plan(struct import_documents *d, const json_t *plan, struct error *e)
{
    struct problems problems = {0};
    double train = json_get_number(plan, "train_images", 0),
           eval = json_get_number(plan, "eval_images", 0);

    if (!(train >= 0 && train <= IMAGES_MOST && eval >= 0 && eval <= IMAGES_MOST))
        return error_set(e, ERR_INVALID,
                         "plan.json of the archive: train_images and eval_images "
                         "must be numbers of images");
    struct plan_inputs inputs = {.train_images = (int64_t)train, .eval_images = (int64_t)eval};
    plan_inputs_share_out(d->spec, &inputs);
    d->own = plan_make(d->spec, &inputs, &problems);
    if (!d->own) {
        char *text = problems_to_text(&problems);
        error_set(e, ERR_INVALID, "plan.json of the archive does not fit its job.json: %.600s",
                  text ? text : "");
        free(text);
    }
    problems_clear(&problems);
    return d->own ? 0 : -(int)e->code;
}

/* What the numbers of a run hang on must follow from the document and the images; the rest is shown
 * as it is. */
static int check_plan(const json_t *theirs, const json_t *ours, struct error *e)
{
    static const char *const keys[] = {"world_size", "global_batch", "train_steps"};
    const char *at = "it";

    if (!has_shape(theirs, ours, &at))
        return error_set(e, ERR_INVALID, "plan.json of the archive is no plan: %s has another type",
                         at);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (!json_equal(json_object_get(theirs, keys[i]), json_object_get(ours, keys[i])))
            return error_set(e, ERR_INVALID,
                             "plan.json of the archive: %s does not follow from job.json and the "
                             "number of images",
                             keys[i]);
    return 0;
}

static int read_plan(const char *folder, struct import_documents *d, struct error *e)
{
    json_t *theirs = read_document(folder, "plan.json", e);
    int status = theirs ? make_own_plan(d, theirs, e) : -(int)e->code;
    json_t *ours = status ? NULL : plan_to_json(d->own);

    if (!status)
        status = check_plan(theirs, ours, e);
    if (!status) {
        d->plan_text = job_json_text(known_keys(theirs, ours));
        status = d->plan_text ? 0 : error_set(e, ERR_NO_MEMORY, "no memory for the plan");
    }
    json_decref(theirs);
    json_decref(ours);
    return status;
}

/* ---- events.jsonl */

static int open_events(const char *folder, struct import_documents *d, struct error *e)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%.*s/events.jsonl", PATH_MAX - 32, folder);
    d->events = fopen(path, "re");
    return d->events ? 0 : error_set(e, ERR_INVALID, "the archive has no events.jsonl");
}

static bool is_type(const char *type)
{
    size_t length = type ? strlen(type) : 0;

    return length > 0 && length <= 32 && strspn(type, "abcdefghijklmnopqrstuvwxyz_") == length;
}

static int read_event(struct import_documents *d, struct store_import_event *event, struct error *e)
{
    json_int_t attempt = 0;
    double t = NAN;
    const char *type = NULL;
    json_t *body = NULL;

    json_decref(d->event);
    d->event = json_loads(d->line, JSON_REJECT_DUPLICATES, NULL);
    if (json_unpack(d->event, "{s:I, s:F, s:s, s:o !}", "attempt", &attempt, "t", &t, "type", &type,
                    "body", &body) ||
        attempt < 0 || attempt > d->attempts || !(t >= 0 && t <= T_MOST) || !is_type(type) ||
        !json_is_object(body))
        return error_set(e, ERR_INVALID,
                         "line %lld of events.jsonl of the archive is no event {\"attempt\", "
                         "\"t\", \"type\", \"body\"} of one of its %lld attempts",
                         (long long)d->number, (long long)d->attempts);
    *event = (struct store_import_event){attempt, t, type, body};
    return 1;
}

int import_documents_next(void *context, struct store_import_event *event, struct error *e)
{
    struct import_documents *d = context;

    if (!d->line && !(d->line = malloc(LINE_LIMIT_BYTES)))
        return error_set(e, ERR_NO_MEMORY, "no memory to read events");
    if (!fgets(d->line, LINE_LIMIT_BYTES, d->events))
        return ferror(d->events) ? error_set(e, ERR_IO, "cannot read events.jsonl") : 0;
    d->number++;
    if (!strchr(d->line, '\n'))
        return error_set(e, ERR_INVALID,
                         "line %lld of events.jsonl of the archive is longer than %d bytes, or cut "
                         "off",
                         (long long)d->number, LINE_LIMIT_BYTES);
    return read_event(d, event, e);
}

static int check_events_size(const struct import_documents *d, struct error *e)
{
    struct stat about;
    int64_t count = 0;

    if (fstat(fileno(d->events), &about))
        return error_set_errno(e, errno, "cannot read events.jsonl");
    if (about.st_size > EVENTS_BYTES_MOST)
        return error_set(e, ERR_TOO_LARGE,
                         "events.jsonl of the archive has %lld bytes; %d are imported at most",
                         (long long)about.st_size, EVENTS_BYTES_MOST);
    for (int c; (c = getc_unlocked(d->events)) != EOF;)
        count += c == '\n';
    rewind(d->events);
    if (count > EVENTS_MOST)
        return error_set(e, ERR_TOO_LARGE,
                         "events.jsonl of the archive has %lld events; %d are imported at most",
                         (long long)count, EVENTS_MOST);
    return 0;
}

/* All of them, before the transaction that stores them: what is wrong holds nobody up. */
static int check_events(struct import_documents *d, struct error *e)
{
    struct store_import_event event;
    int found, status = check_events_size(d, e);

    while (!status && (found = import_documents_next(d, &event, e)))
        status = found < 0 ? found : 0;
    rewind(d->events);
    d->number = 0;
    return status;
}

/* ---- the whole */

int import_documents_read(const char *folder, int64_t attempts, struct import_documents *d,
                          struct error *e)
{
    *d = (struct import_documents){.attempts = attempts};
    int status = read_spec(folder, d, e);

    if (!status)
        status = read_plan(folder, d, e);
    if (!status)
        status = open_events(folder, d, e);
    return status ? status : check_events(d, e);
}

void import_documents_clear(struct import_documents *d)
{
    plan_destroy(d->own);
    job_spec_destroy(d->spec);
    free(d->spec_text);
    free(d->plan_text);
    free(d->line);
    json_decref(d->event);
    if (d->events)
        fclose(d->events);
}
