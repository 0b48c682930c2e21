/* Events become rows exactly once, whatever the file looks like and whenever the reader is killed.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/ingest/apply.h"
#include "daemon/store/attempt.h"
#include "daemon/store/event.h"
#include "daemon/store/job_change.h"
#include "daemon/store/job_insert.h"
#include "daemon/store/job_row.h"
#include "daemon/store/metric.h"
#include "tests/unit/daemon/store.h"

static char events_path[PATH_MAX];
static struct ingest *ingest;
static int64_t job_id;

static void submit_ingested(void)
{
    struct store_job_new job = {
        .name = "a",
        .spec = "{}",
        .plan = "{}",
        .size = {.slots = 1, .train_steps = 4},
        .reason = "r",
        .now = 1
    };
    bool existed;
    int64_t attempt;
    cr_assert_eq(store_job_insert(store, &job, &job_id, &existed, &e), 0, "%s", e.text);
    cr_assert_eq(store_job_begin_attempt(store, job_id,
                                         &(struct store_state_change){JOB_STARTING, "r", 2, NULL},
                                         0, &attempt, &e),
                 0, "%s", e.text);
}

static void set_up(void)
{
    make_store();
    snprintf(events_path, sizeof events_path, "%s/events.jsonl", folder);
    submit_ingested();
    cr_assert_eq(ingest_create(store, job_id, 1, folder, &ingest, &e), 0, "%s", e.text);
}

static void tear_down(void)
{
    ingest_destroy(ingest);
    remove_store();
}

TestSuite(apply, .init = set_up, .fini = tear_down);

static void append_events(const char *text)
{
    int fd = open(events_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void catch_up(void)
{
    cr_assert_eq(ingest_catch_up(ingest, &e), 0, "%s", e.text);
}

static struct store_job read_ingested_job(void)
{
    struct store_job job;
    cr_assert_eq(store_job_get(store, job_id, &job, &e), 0, "%s", e.text);
    return job;
}

static enum job_state ingested_state(void)
{
    struct store_job job = read_ingested_job();
    enum job_state s = job.state;
    store_job_clear(&job);
    return s;
}

static size_t count_events(const char *type)
{
    json_t *events, *event;
    size_t i, count = 0;
    cr_assert_eq(
        store_event_list(store, &(struct store_event_range){.job_id = job_id}, &events, &e), 0);
    json_array_foreach (events, i, event)
        count += strcmp(json_string_value(json_object_get(event, "type")), type) == 0;
    json_decref(events);
    return count;
}

Test(apply, events_move_the_job_and_its_progress)
{
    append_events("{\"seq\":1,\"t\":1,\"type\":\"run_start\"}\n");
    catch_up();
    cr_assert_eq(ingested_state(), JOB_RUNNING);
    append_events(
        "{\"seq\":2,\"t\":2,\"type\":\"step\",\"step\":1,\"epoch\":0.5,\"loss\":2.5,\"lr\":0.1}\n");
    catch_up();
    struct store_job job = read_ingested_job();
    cr_assert_eq(job.step, 1);
    cr_assert_eq(job.loss, 2.5);
    store_job_clear(&job);
    append_events("{\"seq\":3,\"t\":3,\"type\":\"eval_progress\",\"step\":1}\n");
    catch_up();
    cr_assert_eq(ingested_state(), JOB_EVALUATING);
    append_events("{\"seq\":4,\"t\":3,\"type\":\"eval\",\"step\":1,\"top1\":0.5,\"top5\":0.75}\n"
                  "{\"seq\":5,\"t\":4,\"type\":\"step\",\"step\":2,\"loss\":2.25}\n");
    catch_up();
    cr_assert_eq(ingested_state(), JOB_RUNNING);
    append_events(
        "{\"seq\":6,\"t\":9,\"type\":\"run_stop\",\"status\":\"success\",\"ttt_seconds\":8.5}\n");
    catch_up();
    job = read_ingested_job();
    cr_assert_eq(job.state, JOB_RUNNING, "the end is decided by the manager, not by a line");
    cr_assert_eq(job.ttt_seconds, 8.5);
    cr_assert_eq(job.top1, 0.5);
    store_job_clear(&job);
}

Test(apply, bad_lines_are_a_warning_and_the_rest_counts)
{
    append_events("{\"seq\":1,\"t\":1,\"type\":\"run_start\"}\n"
                  "not json\n"
                  "\n"
                  "[1,2]\n"
                  "{\"seq\":\"x\",\"t\":1,\"type\":\"step\"}\n"
                  "{\"seq\":1,\"t\":1,\"type\":\"step\",\"step\":9}\n"
                  "{\"seq\":2,\"t\":1,\"type\":\"hiccup\"}\n"
                  "{\"seq\":3,\"t\":1,\"type\":\"step\",\"step\":1}\n");
    catch_up();
    cr_assert_eq(count_events("step"), 1);
    cr_assert_eq(count_events("hiccup"), 1, "an unknown type is kept");
    cr_assert_eq(count_events("warning"), 1);
    struct store_job job = read_ingested_job();
    cr_assert_eq(job.step, 1);
    store_job_clear(&job);
}

Test(apply, an_impossible_step_is_in_no_series)
{
    struct store_metric_ends ends;

    append_events(
        "{\"seq\":1,\"t\":1,\"type\":\"run_start\",\"resumed_step\":9223372036854775807}\n"
        "{\"seq\":2,\"t\":1,\"type\":\"step\",\"step\":1,\"loss\":1}\n"
        "{\"seq\": 3, \"t\": 1, \"type\": \"step\", \"step\": 9223372036854775807, \"loss\": 1}\n"
        "{\"seq\":4,\"t\":1,\"type\":\"step\",\"step\":9223372036854775807,\"loss\":1}\n"
        "{\"seq\":5,\"t\":1,\"type\":\"eval\",\"step\":9223372036854775807,\"top1\":0.5}\n");
    catch_up();
    cr_assert_eq(count_events("step"), 3, "each is kept as an event");
    cr_assert_eq(store_metric_ends(store, job_id, 0, INT64_MAX, 10, &ends, &e), 0, "%s", e.text);
    cr_assert_eq(ends.rows, 1);
    cr_assert_eq(ends.last_step, 1);
    struct store_job job = read_ingested_job();
    cr_assert_eq(job.step, 1);
    cr_assert_eq(job.best_top1_step, 0);
    store_job_clear(&job);
}

Test(apply, a_broken_file_cannot_flood_the_store)
{
    for (int i = 0; i < 100; i++) {
        append_events("junk\n");
        catch_up();
    }
    cr_assert_eq(count_events("warning"), 20);
}

Test(apply, an_ended_job_stays_ended)
{
    struct store_state_change cancelled = {JOB_CANCELLED, "r", 3, NULL};
    cr_assert_eq(store_job_set_state(store, job_id, &cancelled, &e), 0);
    append_events("{\"seq\":1,\"t\":1,\"type\":\"run_start\"}\n");
    catch_up();
    cr_assert_eq(ingested_state(), JOB_CANCELLED);
    cr_assert_eq(count_events("run_start"), 1);
}

/* ---------------------------------------------------------------- killed readers */

#define LINES 3000

/* Appends in pieces that have nothing to do with lines. */
static void write_in_pieces(void)
{
    static char text[LINES * 80];
    size_t bytes = 0;
    unsigned random = 12345;
    struct timespec pause = {0, 300000};
    int fd = open(events_path, O_WRONLY | O_CREAT | O_APPEND, 0600);

    for (int i = 1; i <= LINES; i++)
        bytes += (size_t)sprintf(
            text + bytes, "{\"seq\":%d,\"t\":%d,\"type\":\"step\",\"step\":%d,\"loss\":1.5}\n", i,
            i, i);
    for (size_t at = 0; at < bytes;) {
        random = random * 1103515245 + 12345;
        size_t n = 1 + (random >> 16) % 400;
        if (n > bytes - at)
            n = bytes - at;
        if (write(fd, text + at, n) != (ssize_t)n)
            _exit(1);
        at += n;
        nanosleep(&pause, NULL);
    }
    _exit(0);
}

static void read_until_killed(void)
{
    struct store *s;
    struct ingest *i;
    struct timespec pause = {0, 1000000};

    if (store_open(in_folder("traind.db"), &s, &e) || ingest_create(s, job_id, 1, folder, &i, &e))
        _exit(1);
    while (ingest_catch_up(i, &e) == 0)
        nanosleep(&pause, NULL);
    _exit(2);
}

Test(apply, no_event_is_lost_or_doubled_by_kills, .timeout = 600)
{
    unsigned random = 99;
    int kills = 0, status;
    bool writing = true;

    ingest_destroy(ingest);
    ingest = NULL;
    store_close(store);
    store = NULL;
    pid_t writer = fork();
    if (writer == 0)
        write_in_pieces();
    /* A fast machine writes it all before ten readers were killed: the rest die over a whole file.
     */
    while (writing || kills < 10) {
        writing = writing && waitpid(writer, &status, WNOHANG) == 0;
        pid_t reader = fork();
        if (reader == 0)
            read_until_killed();
        random = random * 1103515245 + 12345;
        struct timespec life = {0, (long)(5 + (random >> 16) % 60) * 1000000};
        nanosleep(&life, NULL);
        kill(reader, SIGKILL);
        int how;
        waitpid(reader, &how, 0);
        cr_assert(WIFSIGNALED(how), "the reader ended by itself with %d", how);
        kills++;
    }
    cr_assert_eq(status, 0);
    cr_assert_eq(store_open(in_folder("traind.db"), &store, &e), 0, "%s", e.text);
    cr_assert_eq(ingest_create(store, job_id, 1, folder, &ingest, &e), 0, "%s", e.text);
    catch_up();
    cr_assert_eq(count_events("step"), LINES, "%d kills", kills);
    cr_assert_eq(count_events("warning"), 0);
}

static void append_steps(FILE *file, int from, int count)
{
    for (int i = from; i < from + count; i++)
        fprintf(file,
                "{\"seq\":%d,\"t\":%d,\"type\":\"step\",\"step\":%d,\"epoch\":0.1,\"loss\":1.5,"
                "\"lr\":0.1,"
                "\"images_per_sec\":200.5,\"step_ms\":40.1,\"data_ms\":0.1,\"forward_ms\":11.5,"
                "\"backward_ms\":22.5,\"comm_ms\":3.5,\"optim_ms\":1.5,\"grad_norm\":3.25,"
                "\"slowest_rank\":1}\n",
                i, i, i);
}

/* Its speed is printed, not judged: ingest must keep up with 1,000 events/s. */
Test(apply, ten_thousand_events_in_one_go, .timeout = 600)
{
    FILE *file = fopen(events_path, "a");
    append_steps(file, 1, 10000);
    fclose(file);
    double start = clock_monotonic();
    catch_up();
    double seconds = clock_monotonic() - start;
    fprintf(stderr, "# %.0f events/s\n", 10000 / seconds);
    cr_assert_eq(count_events("step"), 10000);
}

Test(apply, a_bad_line_is_reported_as_text)
{
    struct store_event_range range = {.job_id = job_id, .types = "warning"};
    json_t *events;

    append_events("\xff\xfe{\x01\n");
    catch_up();
    cr_assert_eq(store_event_list(store, &range, &events, &e), 0, "%s", e.text);
    cr_assert_eq(json_array_size(events), 1);
    const char *message = json_string_value(json_object_get(json_array_get(events, 0), "message"));
    cr_assert_not_null(message);
    cr_assert_not_null(strstr(message, "1 bad line"), "%s", message);
    json_decref(events);
}
