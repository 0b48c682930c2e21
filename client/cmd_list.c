#include <math.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/human.h"
#include "client/job.h"
#include "client/print.h"
#include "client/table.h"
#include "common/clock.h"

#define LIMIT_DEFAULT 20

static void add_job(struct libscols_table *table, const struct job *job)
{
    struct libscols_line *line = table_line(table);
    char text[HUMAN_BYTES];
    double left = job_time_left(job, clock_now()).value;

    snprintf(text, sizeof text, "%ld", job->id);
    table_set(line, 0, text);
    table_set(line, 1, job->name);
    table_set(line, 2, job->state);
    table_set_color(line, 2, job_state_color(job->state));
    snprintf(text, sizeof text, "%.0f %%", floor(100 * job_progress(job)));
    table_set(line, 3, text);
    table_set(line, 4, human_percent(text, sizeof text, job->top1));
    table_set(line, 5, human_rate(text, sizeof text, job->images_per_sec));
    if (!isnan(job->estimated_start)) {
        char in[HUMAN_BYTES];
        left = fmax(0, job->estimated_start - clock_now());
        snprintf(text, sizeof text, "starts in %s", human_duration(in, sizeof in, left));
        table_set(line, 6, text);
    } else
        table_set(line, 6, human_duration(text, sizeof text, left));
    table_set(line, 7, human_ago(text, sizeof text, clock_now() - job->created_at));
    table_set(line, 8, job->reason);
}

static void print_jobs(const json_t *answer)
{
    static const struct {
        const char *heading;
        int flags;
    } columns[] = {
        {"ID",        TABLE_RIGHT},
        {"NAME",      TABLE_TRUNC},
        {"STATE",     0          },
        {"DONE",      TABLE_RIGHT},
        {"TOP-1",     TABLE_RIGHT},
        {"SPEED",     TABLE_RIGHT},
        {"LEFT",      TABLE_RIGHT},
        {"SUBMITTED", TABLE_RIGHT},
        {"REASON",    TABLE_TRUNC}
    };
    struct libscols_table *table = table_create(1);
    const json_t *item;
    size_t i;

    for (i = 0; i < sizeof columns / sizeof columns[0]; i++)
        table_column(table, columns[i].heading, columns[i].flags);
    json_array_foreach (json_object_get(answer, "jobs"), i, item) {
        struct job job;
        job_read(item, &job);
        add_job(table, &job);
    }
    table_finish(table);
}

int cmd_list(int argc, char **argv)
{
    struct cmd_args args;
    struct error e;
    char path[256];
    json_t *answer;
    long limit = LIMIT_DEFAULT;
    int done = cmd_parse(&args, argc, argv);

    if (done >= 0)
        return done;
    const char *count = cmd_value(&args, "limit");
    if (count && cmd_number(count, "limit", 1, 1000, &limit, &e) < 0)
        return cmd_fail(&e);
    snprintf(path, sizeof path, "/v1/jobs?limit=%ld", limit);
    const char *state = cmd_value(&args, "state");
    if (state && (strlen(state) > 100 || cmd_words(state, "state", cmd_state_at, &e)))
        return strlen(state) > 100 ? cmd_usage(args.cmd, "--state names states") : cmd_fail(&e);
    if (state)
        snprintf(path + strlen(path), sizeof path - strlen(path), "&state=%s", state);
    if (api_get(path, &answer, &e) < 0)
        return cmd_fail(&e);
    if (client.json)
        print_json(answer);
    else if (json_array_size(json_object_get(answer, "jobs")) == 0)
        printf(state ? "there is no job in state %s\n"
                     : "no jobs yet: submit one with \"trainctl submit FILE\"\n",
               state);
    else
        print_jobs(answer);
    json_decref(answer);
    return 0;
}
