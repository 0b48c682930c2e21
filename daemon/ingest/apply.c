#include "daemon/ingest/apply.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert_always.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/xalloc.h"
#include "common/system/file.h"
#include "common/text.h"
#include "daemon/ingest/fast_step_parser.h"
#include "daemon/ingest/tail.h"
#include "daemon/store/event.h"
#include "daemon/store/job_row.h"

#define EVENTS_A_COMMIT 1024 /* bounds memory use and how long the store's writer is held */
#define WARNINGS_KEPT   20   /* per attempt, so that a broken file cannot fill the database */

#define INGEST_MAGIC 0x1e6e57edu

struct ingest {
    unsigned magic;
    struct store *store;
    int64_t job_id, attempt;
    char run_dir[PATH_MAX];
    struct tail *tail;
    int64_t last_seq;
    int warnings;
    struct store_event events[EVENTS_A_COMMIT];
};

struct batch {
    size_t count;
    int64_t bad;
    bool saved;           /* contains a checkpoint */
    char bad_words[256];  /* description of the first bad line */
    enum job_state state; /* implied by the events so far; JOB_STATE_COUNT: none */
};

int ingest_create(struct store *store, int64_t job_id, int64_t attempt, const char *attempt_dir,
                  struct ingest **out, struct error *e)
{
    char path[PATH_MAX];
    int64_t position;
    struct ingest *i = xcalloc(1, sizeof *i);

    *i = (struct ingest){
        .magic = INGEST_MAGIC, .store = store, .job_id = job_id, .attempt = attempt};
    if (file_path(path, e, "%s/events.jsonl", attempt_dir) ||
        file_path(i->run_dir, e, "%s/..", attempt_dir) ||
        store_ingest_position(store, job_id, attempt, &position, e) ||
        store_ingest_seq(store, job_id, attempt, &i->last_seq, e)) {
        ingest_destroy(i);
        return -(int)e->code;
    }
    i->tail = tail_create(path, position);
    *out = i;
    return 0;
}

void ingest_destroy(struct ingest *i)
{
    if (!i)
        return;
    assert_object_ends(i, INGEST_MAGIC);
    tail_destroy(i->tail);
    free(i);
}

static void apply_note_bad(struct batch *b, const char *what, const char *line)
{
    char shown[160];

    if (b->bad++ > 0)
        return;
    text_escape(shown, sizeof shown, line, strnlen(line, 120), "");
    snprintf(b->bad_words, sizeof b->bad_words, "%s: %s", what, shown);
}

static void apply_accept_event(struct ingest *i, struct batch *b)
{
    const struct store_event *event = &i->events[b->count++];

    assert_always(event->seq > i->last_seq);
    i->last_seq = event->seq;
    b->saved = b->saved || event->type == EVENT_CHECKPOINT;
    if (event->type == EVENT_RUN_START || event->type == EVENT_STEP)
        b->state = JOB_RUNNING;
    else if (event->type == EVENT_EVAL_PROGRESS || event->type == EVENT_EVAL)
        b->state = JOB_EVALUATING;
}

static void apply_ingest_event(struct ingest *i, struct batch *b, json_t *body, char *line)
{
    const json_t *seq = json_object_get(body, "seq");
    const json_t *t = json_object_get(body, "t");
    const char *type = json_string_value(json_object_get(body, "type"));

    if (!json_is_integer(seq) || !json_is_number(t) || !type) {
        apply_note_bad(b, "an event without seq, t or type", line);
        json_decref(body);
        return;
    }
    if (json_integer_value(seq) <= i->last_seq) {
        apply_note_bad(b, "an event whose seq does not increase", line);
        json_decref(body);
        return;
    }
    struct store_event *event = &i->events[b->count];
    *event = (struct store_event){.seq = json_integer_value(seq),
                                  .t = json_number_value(t),
                                  .type = event_type_of(type),
                                  .body = body};
    if (event->type == EVENT_TYPE_COUNT)
        apply_note_bad(b, "an event of unknown type, stored unchanged", line);
    if (event->type == EVENT_STEP)
        store_step_of(body, &event->step);
    apply_accept_event(i, b);
}

static void apply_ingest_line(struct ingest *i, struct batch *b, char *line)
{
    struct store_event *event = &i->events[b->count];
    size_t own;

    if (fast_step_parse(line, event, &own) && event->seq > i->last_seq) {
        line[own - 1] = '{';
        event->own = line + own - 1;
        apply_accept_event(i, b);
        return;
    }
    json_t *body = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(body)) {
        apply_ingest_event(i, b, body, line);
        return;
    }
    json_decref(body);
    apply_note_bad(b, "a line that is not a JSON object", line);
}

static void apply_ingest_warn(struct ingest *i, const char *message)
{
    struct error e;
    json_t *fields = json_pack("{s:s}", "message", message);

    log_warning("job %lld: events.jsonl: %s", (long long)i->job_id, message);
    if (i->warnings++ < WARNINGS_KEPT &&
        store_event_add(i->store, i->job_id, i->attempt, "warning", fields, clock_now(), &e))
        log_warning("job %lld: cannot store a warning: %s", (long long)i->job_id, e.text);
    json_decref(fields);
}

static int apply_ingest_commit(struct ingest *i, struct batch *b, int64_t to_bytes, struct error *e)
{
    struct store_state_change change = {b->state, NULL, clock_now(), NULL};
    struct error ignored;
    struct store_job job;
    bool wanted =
        b->state != JOB_STATE_COUNT && store_job_get(i->store, i->job_id, &job, &ignored) == 0;

    if (wanted) {
        wanted = job_state_leads_to(job.state, b->state); /* a job that has ended keeps its state */
        store_job_clear(&job);
    }
    struct store_batch batch = {
        .job_id = i->job_id,
        .attempt = i->attempt,
        .from_bytes = tail_position(i->tail),
        .to_bytes = to_bytes,
        .events = i->events,
        .count = b->count,
        .change = wanted ? &change : NULL,
    };
    int64_t seq_before = b->count ? i->events[0].seq - 1 : i->last_seq;

    int status = store_ingest(i->store, &batch, e);
    for (size_t k = 0; k < b->count; k++)
        json_decref((json_t *)i->events[k].body);
    if (status) {
        i->last_seq = seq_before; /* the lines will be read again */
        return status;
    }
    tail_advance(i->tail, to_bytes);
    if (b->saved)
        status = store_job_set_disk(i->store, i->job_id, file_tree_bytes(i->run_dir), e);
    if (b->bad) {
        char message[320];
        snprintf(message, sizeof message, "%lld bad line%s, the first is %s", (long long)b->bad,
                 plural(b->bad), b->bad_words);
        apply_ingest_warn(i, message);
    }
    return status;
}

static int apply_chunk(struct ingest *i, const struct tail_chunk *chunk, struct error *e)
{
    struct batch b = {.state = JOB_STATE_COUNT};
    char *line = chunk->text, *end = chunk->text + chunk->bytes;

    if (chunk->overlong) {
        apply_note_bad(&b, "a line longer than 256 KiB", chunk->text);
        return apply_ingest_commit(i, &b, chunk->to_bytes, e);
    }
    while (line < end) {
        apply_ingest_line(i, &b, line);
        line += strlen(line) + 1;
        if (b.count == EVENTS_A_COMMIT || line >= end) {
            int status = apply_ingest_commit(i, &b, chunk->from_bytes + (line - chunk->text), e);
            if (status)
                return status;
            b = (struct batch){.state = JOB_STATE_COUNT};
        }
    }
    return 0;
}

int ingest_catch_up(struct ingest *i, struct error *e)
{
    struct tail_chunk chunk;
    bool truncated;
    int status;

    assert_object(i, INGEST_MAGIC);
    while ((status = tail_read(i->tail, &chunk, &truncated, e)) > 0) {
        status = apply_chunk(i, &chunk, e);
        if (status)
            return status;
    }
    if (truncated)
        apply_ingest_warn(
            i, "the file has become shorter than the part already read: events may be missing");
    return status;
}
