/*
 * How fast step events of a spool get into SQLite: ingest [EVENTS]. Prints events/s, and the time
 * to read a down-sampled series back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/system/file.h"
#include "daemon/ingest/apply.h"
#include "daemon/store/attempt.h"
#include "daemon/store/job_change.h"
#include "daemon/store/job_insert.h"
#include "daemon/store/metric.h"
#include "daemon/store/store_open.h"

static char folder[] = "/tmp/traind-ingest.XXXXXX";

static void write_spool(const char *path, long events)
{
    FILE *out = fopen(path, "w");

    for (long i = 1; out && i <= events; i++)
        fprintf(
            out,
            "{\"seq\": %ld, \"t\": %.6f, \"type\": \"step\", \"step\": %ld, \"epoch\": %.9g, "
            "\"loss\": %.9g, \"lr\": %.9g, \"images_per_sec\": %.9g, \"step_ms\": %.9g, "
            "\"data_ms\": %.9g, \"forward_ms\": %.9g, \"backward_ms\": %.9g, \"comm_ms\": %.9g, "
            "\"optim_ms\": %.9g, \"grad_norm\": %.9g, \"slowest_rank\": %ld, "
            "\"rank_busy_ms\": [%.6g, %.6g]}\n",
            i, 1.7e9 + (double)i / 7, i, (double)i / 5004, 7.0 / (double)i, 0.1 / (double)i,
            211.5 + (double)(i % 97) / 3, 240.1 + (double)(i % 89) / 7, 0.1 + (double)(i % 3) / 9,
            80.5 + (double)(i % 11) / 7, 150.2 + (double)(i % 13) / 7, 3.0 + (double)(i % 5) / 7,
            5.5 + (double)(i % 7) / 9, 1.0 + (double)(i % 101) / 77, i % 2,
            240.0 + (double)(i % 17) / 3, 239.0 + (double)(i % 19) / 3);
    if (!out || fclose(out))
        exit(1);
}

static void stop_at(int status, const struct error *e)
{
    if (status == 0)
        return;
    fprintf(stderr, "ingest: %s\n", e->text);
    exit(1);
}

static void ingest_count(void *context, const struct store_metric_part *part)
{
    *(double *)context += (double)part->rows;
}

int main(int argc, char **argv)
{
    long events = argc > 1 ? atol(argv[1]) : 500000;
    char path[64];
    struct error e;
    struct store *store;
    struct ingest *ingest;
    int64_t id, attempt;
    bool existed;
    double rows = 0;

    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/traind.db", folder);
    stop_at(store_open(path, &store, &e), &e);
    struct store_job_new job = {.spec = "{}", .plan = "{}", .now = 1};
    stop_at(store_job_insert(store, &job, &id, &existed, &e), &e);
    stop_at(store_job_begin_attempt(store, id,
                                    &(struct store_state_change){JOB_STARTING, NULL, 1, NULL}, 0,
                                    &attempt, &e),
            &e);
    snprintf(path, sizeof path, "%s/events.jsonl", folder);
    write_spool(path, events);
    stop_at(ingest_create(store, id, attempt, folder, &ingest, &e), &e);
    double begin = clock_monotonic();
    stop_at(ingest_catch_up(ingest, &e), &e);
    double end = clock_monotonic();
    printf("%.0f events/s\n", (double)events / (end - begin));
    begin = clock_monotonic();
    stop_at(store_metric_parts(store, id, 1, events + 1, 1000, ingest_count, &rows, &e), &e);
    end = clock_monotonic();
    printf("%.1f ms to fold %.0f steps for 1000 points\n", (end - begin) * 1e3, rows);
    ingest_destroy(ingest);
    store_close(store);
    return file_remove_tree(folder, &e) ? 1 : 0;
}
