#include <stdlib.h>
#include <string.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/job.h"
#include "client/views/print.h"
#include "common/json.h"
#include "common/system/file.h"

#define NOTE_READ_BYTES                                                                            \
    (64u << 10) /* larger than the daemon accepts, because its error message is better */

/* message: format with the job's id; NULL: print the tags. */
static int label_patch(long id, const json_t *change, const char *said, struct error *e)
{
    char path[64];
    json_t *answer;

    snprintf(path, sizeof path, "/v1/jobs/%ld", id);
    int code = api_send_json("PATCH", path, change, &answer, e);
    if (code < 0)
        return code;
    if (said)
        return cmd_tell(answer, said, id);
    char *tags = job_tags_words(answer);
    cmd_tell(answer, "Tags of job %ld: %s\n", id, *tags ? tags : "none");
    free(tags);
    return 0;
}

/* Patches every operand. Steals change; NULL: the text was not valid UTF-8. */
static int label_each(const struct cmd_args *args, json_t *change, const char *said)
{
    long ids[CMD_OPERANDS_MAX];
    struct error e;
    int code = 0;

    if (!change) {
        error_set(&e, ERR_USAGE, "the text is not valid UTF-8");
        return cmd_fail(&e);
    }
    if (cmd_job_ids(args, ids, &e) < 0) {
        json_decref(change);
        return cmd_fail(&e);
    }
    for (int i = 0; i < args->operand_count; i++)
        if (label_patch(ids[i], change, said, &e) < 0)
            code = cmd_fail(&e);
    json_decref(change);
    return code;
}

/* Adds the list "a,b"; text NULL: adds nothing. Returns false if it is not valid UTF-8. */
static bool label_add_list(json_t *change, const char *key, const char *text)
{
    json_t *list = text ? json_array() : NULL;
    bool good = true;

    for (const char *at = text; at && *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        good = json_array_append_new(list, json_stringn(at, length)) == 0 && good;
        at += length;
    }
    if (list)
        json_object_set_new(change, key, list);
    return good;
}

static int cmd_tag(const struct cmd_args *args)
{
    const char *add = cmd_value(args, "add"), *remove = cmd_value(args, "remove");
    bool clear = cmd_flag(args, "clear");

    if (!add && !remove && !clear)
        return cmd_usage(args->cmd, "missing --add T, --remove T or --clear, e.g. \"trainctl tag "
                                    "--add baseline 7\"");
    json_t *change = json_object();
    if (!label_add_list(change, "add_tags", add) ||
        !label_add_list(change, "remove_tags", remove)) {
        json_decref(change);
        return label_each(args, NULL, NULL);
    }
    if (clear)
        json_object_set_new(change, "tags", json_null());
    return label_each(args, change, NULL);
}

static int label_one(const struct cmd_args *args, const char *key, const char *text, size_t bytes,
                     const char *said)
{
    struct cmd_args first = *args;

    first.operand_count = 1;
    return label_each(
        &first, bytes ? json_pack("{s:s%}", key, text, bytes) : json_pack("{s:n}", key), said);
}

static int cmd_rename(const struct cmd_args *args)
{
    const char *name = args->operands[1];

    return label_one(args, "name", name, strlen(name),
                     *name ? "Job %ld renamed.\n" : "Name removed from job %ld.\n");
}

static int cmd_note(const struct cmd_args *args)
{
    struct error e;
    const char *text = args->operands[1];
    struct job job;
    json_t *json;
    long id;

    if (args->operand_count == 1) {
        if (cmd_job_id(args->operands[0], &id, &e) < 0 || job_fetch(id, &json, &job, &e) < 0)
            return cmd_fail(&e);
        if (client.json)
            print_json(json_object_get(json, "note"));
        else if (json_get_text(json, "note", NULL))
            puts(json_get_text(json, "note", "")); /* the daemon accepts no control characters */
        json_decref(json);
        return 0;
    }
    size_t bytes = strlen(text);
    char *read = NULL;
    if (strcmp(text, "-") == 0 && file_read_text("-", NOTE_READ_BYTES, &read, &bytes, &e))
        return cmd_fail(&e);
    while (read && bytes > 0 && read[bytes - 1] == '\n')
        bytes--;
    int code = label_one(args, "note", read ? read : text, bytes,
                         bytes ? "Note saved for job %ld.\n" : "Note removed from job %ld.\n");
    free(read);
    return code;
}

/* clang-format off */
const struct cmd cmd_tag_entry = {
    .name = "tag", .synopsis = "[--add T,T] [--remove T,T] [--clear] ID...",
    .help = "add tags to jobs, or remove them", .example = "trainctl tag --add baseline,paper 7",
    .run = cmd_tag, .completion = "job", .operands = {1, CMD_OPERANDS_MAX},
    .options = {
        OPTION("add", 'a', "T,T", "tags to add, separated by commas; others are kept", "tag"),
        OPTION("remove", 'r', "T,T", "tags to remove", "tag"),
        OPTION("clear", 0, NULL, "remove all tags first", NULL),
    },
};
const struct cmd cmd_note_entry = {
    .name = "note", .synopsis = "ID [TEXT|-]",
    .help = "set a job's note (-: from standard input; \"\" removes it), or print it", .example = "trainctl note 7 'warm-up too short'",
    .run = cmd_note, .completion = "job,none", .operands = {1, 2},
};
const struct cmd cmd_rename_entry = {
    .name = "rename", .synopsis = "ID NAME", .help = "rename a job; \"\" removes its name", .example = "trainctl rename 7 resnet50-lars",
    .run = cmd_rename, .completion = "job,none", .operands = {2, 2},
};
/* clang-format on */
