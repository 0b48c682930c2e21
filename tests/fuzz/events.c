/*
 * events.jsonl, as the daemon follows it: whatever stands in it, reading it at once or in two
 * pieces stores the same events, each seq once.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/file.h"
#include "daemon/ingest/apply.h"
#include "daemon/store/attempt.h"
#include "daemon/store/event.h"
#include "daemon/store/job_change.h"
#include "daemon/store/job_insert.h"
#include "daemon/store/store_open.h"
#include "tests/fuzz/fuzz.h"

#define JOBS_A_STORE 400 /* then a new one: a large one is slow */

static struct store *store;
static int jobs;
static struct error e;

static void open_new_store(void)
{
    char path[PATH_MAX];

    store_close(store);
    snprintf(path, sizeof path, "%s/events", fuzz_folder());
    file_remove_tree(path, NULL);
    FUZZ_CHECK(mkdir(path, 0700) == 0, "%s", path);
    snprintf(path, sizeof path, "%s/events/traind.db", fuzz_folder());
    FUZZ_CHECK(store_open(path, &store, &e) == 0, "%s", e.text);
    jobs = 0;
}

static int64_t new_job(void)
{
    struct store_job_new job = {
        .spec = "{}",
        .plan = "{}",
        .reason = "r",
        .now = 1,
        .size = {.launcher = "local", .slots = 1, .train_steps = 4}
    };
    struct store_state_change start = {JOB_STARTING, "r", 2, NULL};
    int64_t id, attempt;
    bool existed;

    if (!store || jobs++ == JOBS_A_STORE)
        open_new_store();
    FUZZ_CHECK(store_job_insert(store, &job, &id, &existed, &e) == 0, "%s", e.text);
    FUZZ_CHECK(store_job_begin_attempt(store, id, &start, 0, &attempt, &e) == 0, "%s", e.text);
    return id;
}

/* Takes the input in two pieces: the first so many bytes, then all. */
static json_t *ingest_pieces(const uint8_t *data, size_t bytes, size_t first)
{
    struct ingest *ingest;
    int64_t id = new_job();
    struct store_event_range range = {.job_id = id};
    json_t *events;

    fuzz_file("events.jsonl", data, first);
    FUZZ_CHECK(ingest_create(store, id, 1, fuzz_folder(), &ingest, &e) == 0, "%s", e.text);
    FUZZ_CHECK(ingest_catch_up(ingest, &e) == 0, "%s", e.text);
    fuzz_file("events.jsonl", data, bytes);
    if (first & 1) { /* and by another daemon */
        ingest_destroy(ingest);
        FUZZ_CHECK(ingest_create(store, id, 1, fuzz_folder(), &ingest, &e) == 0, "%s", e.text);
    }
    FUZZ_CHECK(ingest_catch_up(ingest, &e) == 0, "%s", e.text);
    ingest_destroy(ingest);
    FUZZ_CHECK(store_event_list(store, &range, &events, &e) == 0, "%s", e.text);
    return events;
}

/* Of the workers' events, without what differs from one job to another. */
static json_t *without_place(json_t *events)
{
    json_t *out = json_array(), *event;
    size_t i;

    json_array_foreach (events, i, event) {
        const char *type = json_string_value(json_object_get(event, "type"));
        if (strcmp(type, "state") == 0 || strcmp(type, "warning") == 0)
            continue;
        json_object_del(event, "id");
        json_object_del(event, "job");
        json_array_append(out, event);
    }
    json_decref(events);
    return out;
}

int fuzz_events(const uint8_t *data, size_t bytes)
{
    json_t *whole = without_place(ingest_pieces(data, bytes, bytes));
    json_t *pieces = without_place(ingest_pieces(data, bytes, bytes ? data[0] % bytes : 0));

    FUZZ_CHECK(json_array_size(whole) == json_array_size(pieces), "%zu events, in pieces %zu",
               json_array_size(whole), json_array_size(pieces));
    FUZZ_CHECK(json_equal(whole, pieces), "other events in pieces");
    json_decref(whole);
    json_decref(pieces);
    return 0;
}
