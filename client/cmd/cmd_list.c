#include <math.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/job.h"
#include "client/views/human.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/clock.h"

#define LIMIT_DEFAULT 20

enum column { ID, NAME, STATE, DONE, TOP1, RATE, LEFT, SUBMITTED, REASON, COLUMNS };

static const struct {
    const char *heading;
    int flags;
    int width; /* with what is between columns */
} columns[COLUMNS] = {
    [ID] = {"ID",        TABLE_RIGHT, 6 },
    [NAME] = {"NAME",      TABLE_TRUNC, 2 },
    [STATE] = {"STATE",     0,           12},
    [DONE] = {"DONE",      TABLE_RIGHT, 7 },
    [TOP1] = {"TOP-1",     TABLE_RIGHT, 9 },
    [RATE] = {"IMAGES/S",  TABLE_RIGHT, 10},
    [LEFT] = {"LEFT",      TABLE_RIGHT, 13},
    [SUBMITTED] = {"SUBMITTED", TABLE_RIGHT, 13},
    [REASON] = {"REASON",    TABLE_TRUNC, 1 },
};

#define NAME_LEAST 10
#define NAME_SHARE 0.55 /* of what the other columns leave to names and reasons */

/* Flags of a column: a narrow terminal has no room for the time of submission. */
static int flags_of(enum column c)
{
    return columns[c].flags | (c == SUBMITTED ? table_if_wide() : 0);
}

/* Columns for names, and for reasons. */
struct layout {
    int name, reason;
};

static struct layout make_layout(const json_t *jobs)
{
    struct layout layout = {.name = NAME_LEAST};
    const json_t *item;
    int used = 0;
    size_t i;

    for (int c = 0; c < COLUMNS; c++)
        used += c == SUBMITTED && table_if_wide() ? 0 : columns[c].width;
    json_array_foreach (jobs, i, item) {
        int length = (int)json_string_length(json_object_get(item, "name"));
        layout.name = length > layout.name ? length : layout.name;
    }
    int room = table_room(used);
    if (layout.name > NAME_SHARE * room)
        layout.name = (int)fmax(NAME_LEAST, NAME_SHARE * room);
    layout.reason = room - layout.name;
    return layout;
}

/* Of one that waits: until it starts, as far as that is known. */
static const char *list_format_wait(const struct job *job, char text[HUMAN_BYTES + 8])
{
    char in[HUMAN_BYTES];

    if (isnan(job->estimated_start))
        return human_duration(text, HUMAN_BYTES, job_time_left(job, clock_now()).value);
    human_duration(in, sizeof in, fmax(0, job->estimated_start - clock_now()));
    snprintf(text, HUMAN_BYTES + 8, "in %s", in);
    return text;
}

static void list_add_job(struct libscols_table *table, const struct layout *layout,
                         const struct job *job)
{
    struct libscols_line *line = table_line(table);
    char text[HUMAN_BYTES + 8];

    snprintf(text, sizeof text, "%ld", job->id);
    table_set(line, ID, text);
    table_set_cut(line, NAME, job->name, layout->name);
    table_set(line, STATE, job->state);
    table_set_color(line, STATE, job_state_color(job->state));
    snprintf(text, sizeof text, "%.0f %%", floor(100 * job_progress(job)));
    table_set(line, DONE, text);
    table_set(line, TOP1, human_percent(text, sizeof text, job->top1));
    table_set(line, RATE, human_number(text, sizeof text, job->images_per_sec));
    table_set(line, LEFT, list_format_wait(job, text));
    table_set(line, SUBMITTED, human_ago(text, sizeof text, clock_now() - job->created_at));
    table_set_cut(line, REASON, job->reason, layout->reason);
}

static void print_jobs(const json_t *answer)
{
    const json_t *jobs = json_object_get(answer, "jobs"), *item;
    struct libscols_table *table = table_create(1);
    struct layout layout = make_layout(jobs);
    size_t i;

    for (int c = 0; c < COLUMNS; c++)
        table_column(table, columns[c].heading, flags_of((enum column)c));
    json_array_foreach (jobs, i, item) {
        struct job job;
        job_read(item, &job);
        list_add_job(table, &layout, &job);
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
