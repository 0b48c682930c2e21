/* trainctl resume: back into the queue from the newest checkpoint, also on other workers. */
#include "client/api.h"
#include "client/change.h"
#include "client/cmd.h"
#include "client/job.h"
#include "client/views/format.h"
#include "client/views/table.h"
#include "common/json.h"

/* --set KEY=VALUE, or KEY=VALUE behind the id. */
static json_t *resume_parse_changes(const struct cmd_args *args, struct error *e)
{
    json_t *changes = json_object();
    int status = changes_apply(changes, args, e);

    for (int i = 1; i < args->operand_count && !status; i++)
        status = change_apply(changes, args->operands[i], e);
    if (!status)
        return changes;
    json_decref(changes);
    return NULL;
}

static void resume_format_value(const json_t *value, char *text, size_t bytes)
{
    if (json_is_integer(value))
        format_count(text, bytes, json_integer_value(value));
    else if (json_is_number(value))
        snprintf(text, bytes, "%.9g", json_number_value(value));
    else
        snprintf(text, bytes, "-");
}

/* What differs between the two plans; nothing where nothing does. The steps are those that the job
 * will have made in all: another global batch changes how many are left, not how many were. */
static void cmd_resume_print_numbers(const json_t *resume)
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
        resume_format_value(old, old_text, sizeof old_text);
        resume_format_value(new, new_text, sizeof new_text);
        table_row(table, key, old_text, new_text);
    }
    table_finish(table);
}

static void cmd_resume_print_answer(const json_t *answer)
{
    const json_t *resume = json_object_get(answer, "resume");
    struct job job;

    job_read(answer, &job);
    printf("job %ld %s: resumes from step %lld, %lld steps are left\n", job.id, job.state,
           (long long)json_integer_value(json_object_get(resume, "step")),
           (long long)json_integer_value(json_object_get(resume, "steps_left")));
    cmd_resume_print_numbers(resume);
}

static int cmd_resume(const struct cmd_args *args)
{
    struct error e;
    json_t *answer, *changes;
    char path[64];
    long id;

    if (cmd_job_id(args->operands[0], &id, &e) < 0 || !(changes = resume_parse_changes(args, &e)))
        return cmd_fail(&e);
    snprintf(path, sizeof path, "/v1/jobs/%ld/resume", id);
    int status = api_post_json(path, changes, &answer, &e);
    json_decref(changes);
    return status < 0 ? cmd_fail(&e) : cmd_show_answer(answer, cmd_resume_print_answer);
}

/* clang-format off */
const struct cmd cmd_resume_entry = {
    .name = "resume", .synopsis = "[--set KEY=VALUE...] ID",
    .help = "resume a job from its newest checkpoint", .example = "trainctl resume --set cluster.workers_per_node=1 7",
    .run = cmd_resume, .completion = "job", .operands = {1, CMD_OPERANDS_MAX},
    .options = {
        OPTION("set", 0, "KEY=VALUE", "change a key of cluster or restart, or the priority, e.g. cluster.workers_per_node=1", "key"),
    },
};
/* clang-format on */
