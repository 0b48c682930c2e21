#include <string.h>
#include <unistd.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/cmd/cmd_list.h"
#include "client/document.h"
#include "client/job.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/text.h"

static int control_cancel(long id, struct error *e)
{
    struct job job;
    json_t *answer;

    if (api_call("POST", &answer, e, "/v1/jobs/%ld/cancel", id))
        return -(int)e->code;
    job_read(answer, &job);
    if (job_ended(&job))
        return cmd_tell(answer, "Job %ld %s.\n", id, job.state);
    return cmd_tell(
        answer, "Job %ld is being cancelled. Wait for its end with: trainctl wait %ld\n", id, id);
}

static int control_hold(long id, struct error *e)
{
    json_t *answer;

    if (api_call("POST", &answer, e, "/v1/jobs/%ld/hold", id))
        return -(int)e->code;
    return cmd_tell(answer, "Job %ld held. Release it with: trainctl release %ld\n", id, id);
}

static int control_release(long id, struct error *e)
{
    json_t *answer;

    if (api_call("POST", &answer, e, "/v1/jobs/%ld/release", id))
        return -(int)e->code;
    return cmd_tell(answer, "Job %ld released.\n", id);
}

static int cmd_priority(const struct cmd_args *args)
{
    struct error e;
    long ids[CMD_OPERANDS_MAX], priority;
    json_t *answer;
    char path[64];
    int code = 0;

    const char *to = cmd_value(args, "to");
    if (!to)
        return cmd_usage(args->cmd, "missing --to N. Usage: trainctl priority --to N ID...");
    if (cmd_number(to, "to", -1000, 1000, &priority, &e) < 0 || cmd_job_ids(args, ids, &e) < 0)
        return cmd_fail(&e);
    json_t *body = json_pack("{s:I}", "priority", (json_int_t)priority);
    for (int i = 0; i < args->operand_count; i++) {
        snprintf(path, sizeof path, "/v1/jobs/%ld/priority", ids[i]);
        if (api_send_json("POST", path, body, &answer, &e))
            code = cmd_fail(&e);
        else
            cmd_tell(answer, "Job %ld now has priority %ld.\n", ids[i], priority);
    }
    json_decref(body);
    return code;
}

static void control_format_value(const json_t *value, char *text, size_t bytes)
{
    if (json_is_integer(value))
        format_count(text, bytes, json_integer_value(value));
    else if (json_is_number(value))
        snprintf(text, bytes, "%.9g", json_number_value(value));
    else
        snprintf(text, bytes, "-");
}

/* Prints the rows of the plan that change. train_steps includes the steps already done; with
 * another global batch only the number of remaining steps changes. */
static void control_print_numbers(const json_t *resume)
{
    const json_t *before = json_object_get(resume, "before"), *new;
    json_t *after = json_object_get(resume, "after");
    char old_text[FORMAT_BYTES], new_text[FORMAT_BYTES];
    const char *key;

    if (json_equal((json_t *)before, after))
        return;
    json_object_set_new(after, "train_steps",
                        json_integer(json_get_integer(resume, "step", 0) +
                                     json_get_integer(resume, "steps_left", 0)));
    struct libscols_table *table = table_create(1, "NUMBER,BEFORE>~,AFTER>~");
    json_object_foreach (after, key, new) {
        const json_t *old = json_object_get(before, key);
        if (json_equal((json_t *)old, (json_t *)new))
            continue;
        control_format_value(old, old_text, sizeof old_text);
        control_format_value(new, new_text, sizeof new_text);
        table_row(table, key, old_text, new_text);
    }
    table_finish(table);
}

static void control_print_resume(const json_t *answer)
{
    const json_t *resume = json_object_get(answer, "resume");
    struct job job;

    job_read(answer, &job);
    printf("job %ld %s: resumes from step %lld, %lld steps left\n", job.id, job.state,
           (long long)json_integer_value(json_object_get(resume, "step")),
           (long long)json_integer_value(json_object_get(resume, "steps_left")));
    control_print_numbers(resume);
}

static int cmd_resume(const struct cmd_args *args)
{
    json_t *answer, *changes = json_object();
    struct error e;
    char path[64];
    long id;

    int status = cmd_job_id(args->operands[0], &id, &e);
    if (!status)
        status = document_set_all(changes, args, &e);
    for (int i = 1; i < args->operand_count && !status; i++)
        status = document_set(changes, args->operands[i], &e);
    snprintf(path, sizeof path, "/v1/jobs/%ld/resume", status ? 0 : id);
    if (!status)
        status = api_send_json("POST", path, changes, &answer, &e);
    json_decref(changes);
    return status ? cmd_fail(&e) : cmd_show_answer(answer, control_print_resume);
}

static int control_remove(long id, struct error *e)
{
    json_t *answer;

    if (api_call("DELETE", &answer, e, "/v1/jobs/%ld", id))
        return -(int)e->code;
    return cmd_tell(answer, "Job %ld removed.\n", id);
}

static bool control_is_old(const json_t *job, double before)
{
    const json_t *tag;
    size_t i;

    json_array_foreach (json_object_get(job, "tags"), i, tag)
        if (strcmp(json_string_value(tag), "starred") == 0)
            return false;
    return json_get_number(job, "finished_at", before) < before;
}

static int control_remove_old(const struct cmd_args *args, json_t *jobs, double before)
{
    bool dry = cmd_flag(args, "dry-run"), ask = !dry && !cmd_flag(args, "yes");
    char size[FORMAT_BYTES];
    double bytes = 0;
    struct error e;
    int code = 0;

    for (size_t i = json_array_size(jobs); i-- > 0;)
        if (control_is_old(json_array_get(jobs, i), before))
            bytes += json_get_number(json_array_get(jobs, i), "disk_bytes", 0);
        else
            json_array_remove(jobs, i);
    size_t count = json_array_size(jobs);
    json_t *list = json_pack("{s:O}", "jobs", jobs);
    if (client.json && dry)
        print_json(list);
    else if (!client.json && count)
        list_print_jobs(list, "id,name,state,finished,disk_bytes", false);
    json_decref(list);
    format_size(size, sizeof size, bytes);
    if (!client.json)
        printf("%zu job%s, %s\n", count, plural((int64_t)count), size);
    if (ask && count && !isatty(STDIN_FILENO))
        return cmd_usage(args->cmd, "not on a terminal: use --yes to remove them");
    if (ask && count && !cmd_agrees("Remove them?")) {
        error_set(&e, ERR_CONFLICT, "nothing was removed");
        return cmd_fail(&e);
    }
    for (size_t i = 0; i < count && !dry; i++)
        if (control_remove((long)json_get_integer(json_array_get(jobs, i), "id", 0), &e) < 0)
            code = cmd_fail(&e);
    return code;
}

static int cmd_rm(const struct cmd_args *args)
{
    const char *states = cmd_value(args, "state");
    struct error e;
    double age = 0;
    json_t *answer;
    char path[128];

    if (cmd_duration(args, "older-than", &age, &e) ||
        (states && cmd_words(states, "state", cmd_state_at, &e)))
        return cmd_fail(&e);
    if ((age > 0) == (args->operand_count > 0) ||
        (age == 0 && (states || cmd_flag(args, "dry-run"))))
        return cmd_usage(args->cmd, "expected either IDs, or --older-than with its options");
    if (age == 0)
        return cmd_each_job(args);
    snprintf(path, sizeof path, "/v1/jobs?limit=1000&sort=finished_at&state=%s",
             states ? states : "succeeded,failed,cancelled");
    int code = api_get_pages(path, "jobs", &answer, &e) < 0
                   ? cmd_fail(&e)
                   : control_remove_old(args, json_object_get(answer, "jobs"), clock_now() - age);
    json_decref(answer);
    return code;
}

/* clang-format off */
const struct cmd cmd_cancel_entry = {
    .name = "cancel", .synopsis = "ID...", .help = "cancel jobs", .example = "trainctl cancel 7 8",
    .run = cmd_each_job, .one = control_cancel, .completion = "job", .operands = {1, CMD_OPERANDS_MAX},
};

const struct cmd cmd_hold_entry = {
    .name = "hold", .synopsis = "ID...", .help = "hold queued jobs: they do not start until released", .example = "trainctl hold 7",
    .run = cmd_each_job, .one = control_hold, .completion = "job", .operands = {1, CMD_OPERANDS_MAX},
};
const struct cmd cmd_release_entry = {
    .name = "release", .synopsis = "ID...", .help = "release held jobs", .example = "trainctl release 7",
    .run = cmd_each_job, .one = control_release, .completion = "job", .operands = {1, CMD_OPERANDS_MAX},
};
const struct cmd cmd_priority_entry = {
    .name = "priority", .synopsis = "--to N ID...", .help = "change the priority of queued jobs", .example = "trainctl priority --to 10 7",
    .run = cmd_priority, .completion = "job", .operands = {1, CMD_OPERANDS_MAX},
    .options = {
        OPTION("to", 0, "N", "priority from -1000 to 1000; higher starts first", NULL),
    },
};

const struct cmd cmd_resume_entry = {
    .name = "resume", .synopsis = "[--set KEY=VALUE...] ID",
    .help = "resume a job from its newest checkpoint", .example = "trainctl resume --set cluster.workers_per_node=1 7",
    .run = cmd_resume, .completion = "job", .operands = {1, CMD_OPERANDS_MAX},
    .options = {
        OPTION("set", 0, "KEY=VALUE", "change a key of cluster or restart, or the priority, e.g. cluster.workers_per_node=1", "key"),
    },
};

const struct cmd cmd_rm_entry = {
    .name = "rm", .synopsis = "ID... | --older-than AGE [--state S] [--dry-run] [--yes]", .help = "remove jobs that have ended, with their run directories",
    .example = "trainctl rm --older-than 30d --dry-run",
    .run = cmd_rm, .one = control_remove, .completion = "job", .operands = {0, CMD_OPERANDS_MAX},
    .options = {
        OPTION("older-than", 0, "AGE", "all jobs that ended longer ago, e.g. 7d or 12h, except starred ones", "none"),
        OPTION("state", 0, "S", "with --older-than: only jobs in these states, e.g. failed,cancelled", "succeeded|failed|cancelled"),
        OPTION("dry-run", 'n', NULL, "list the jobs that would be removed, and remove nothing", NULL),
        OPTION("yes", 'y', NULL, "do not ask before jobs are removed by age", NULL),
    },
};
/* clang-format on */
