/* trainctl reproduce: reruns a job with the choices of its run and checks that the result is
 * bit-identical. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/api.h"
#include "client/document.h"
#include "client/cmd/cmd_watch.h"
#include "client/follow.h"
#include "client/job.h"
#include "client/views/print.h"
#include "common/json.h"
#include "common/problem.h"
#include "common/text.h"

#define SO_FAR_EXIT 6 /* trainctl(1), EXIT STATUS */

static int reproduce_differences(FILE *out, const json_t *differences, const char *now)
{
    const json_t *one;
    size_t i;
    int serious = 0;

    json_array_foreach (differences, i, one) {
        const json_t *values = json_object_get(one, "values");
        char *then_text = print_value(json_array_get(values, 0));
        char *now_text = print_value(json_array_get(values, 1));
        bool may = json_is_true(json_object_get(one, "may_change_bits"));
        fprintf(out, "  %s: %s then, %s %s%s\n", json_get_text(one, "words", ""), then_text,
                now_text, now, may ? "" : " (does not change the result)");
        serious += may;
        free(then_text);
        free(now_text);
    }
    return serious;
}

static void reproduce_print_pinned(const json_t *answer)
{
    const json_t *one, *remark;
    char key[PROBLEM_KEY_BYTES];
    size_t i;

    json_array_foreach (json_object_get(answer, "pinned"), i, one) {
        char *value = print_value(json_object_get(one, "value"));
        printf("pinned: %s = %s\n", problem_key(json_get_text(one, "pointer", ""), key), value);
        free(value);
    }
    json_array_foreach (json_object_get(answer, "remarks"), i, remark)
        printf("note: %s\n", json_string_value(remark) ? json_string_value(remark) : "");
}

static int reproduce_check_here(const json_t *answer, bool force, struct error *e)
{
    const json_t *differences = json_object_get(answer, "differences");

    if (!client.json)
        reproduce_print_pinned(answer);
    if (json_array_size(differences) == 0)
        return 0;
    fputs("Differences between this machine and the original run:\n", stderr);
    int serious = reproduce_differences(stderr, differences, "now");
    if (!serious || force)
        return 0;
    return error_set(e, ERR_CONFLICT,
                     "nothing was submitted: the difference%s above may change the result; --force "
                     "submits the job anyway",
                     plural(serious));
}

static int reproduce_submit_again(const struct cmd_args *args, long id, long *copy, struct error *e)
{
    json_t *answer, *job;

    if (api_call("GET", &answer, e, "/v1/jobs/%ld/pinned", id))
        return -(int)e->code;
    json_t *document = json_object_get(answer, "document");
    int status = reproduce_check_here(answer, cmd_flag(args, "force"), e);
    if (!status)
        status = document_set_all(document, args, e);
    if (!status)
        status = api_send_json("POST", "/v1/jobs", document, &job, e);
    json_decref(answer);
    if (status)
        return status;
    *copy = (long)json_get_integer(job, "id", 0);
    if (!client.json)
        printf("job %ld reproduces job %ld\n", *copy, id);
    fflush(stdout);
    json_decref(job);
    return 0;
}

static void reproduce_print_same(const char *what, const json_t *same)
{
    printf("%-12s %s\n", what,
           json_is_true(same)    ? "bit-identical"
           : json_is_false(same) ? "different"
                                 : "not known");
}

static void reproduce_print_reasons(const json_t *answer)
{
    const json_t *differences = json_object_get(answer, "differences"),
                 *documents = json_object_get(answer, "documents"), *one;
    json_int_t step = json_get_integer(answer, "first_step", 0);
    char key[PROBLEM_KEY_BYTES];
    size_t i;

    if (step)
        printf("The first step that differs is %lld.\n", (long long)step);
    if (json_array_size(differences) + json_array_size(documents) == 0) {
        puts("No recorded difference between the two runs explains it.");
        return;
    }
    puts("Possible causes:");
    json_array_foreach (documents, i, one) {
        const json_t *values = json_object_get(one, "values");
        char *then_text = print_value(json_array_get(values, 0));
        char *now_text = print_value(json_array_get(values, 1));
        printf("  %s: %s then, %s in this job\n",
               problem_key(json_get_text(one, "pointer", ""), key), then_text, now_text);
        free(then_text);
        free(now_text);
    }
    reproduce_differences(stdout, differences, "in this job");
}

static void reproduce_print_verdict(const json_t *answer, const char *verdict)
{
    const json_t *same = json_object_get(answer, "same");

    if (strcmp(verdict, "running") != 0) {
        reproduce_print_same("weights", json_object_get(same, "weights"));
        reproduce_print_same("losses", json_object_get(same, "losses"));
        reproduce_print_same("evaluations", json_object_get(same, "evaluations"));
    }
    puts(json_get_text(answer, "words", verdict));
    if (strcmp(verdict, "differs") == 0)
        reproduce_print_reasons(answer);
}

static int reproduce_tell(long copy)
{
    struct error e;
    json_t *answer;

    if (api_call("GET", &answer, &e, "/v1/jobs/%ld/reproduction", copy))
        return cmd_fail(&e);
    const char *verdict = json_get_text(answer, "verdict", "");
    if (client.json)
        print_json(answer);
    else
        reproduce_print_verdict(answer, verdict);
    int code = strcmp(verdict, "same") == 0          ? 0
               : strcmp(verdict, "same_so_far") == 0 ? SO_FAR_EXIT
                                                     : 1;
    json_decref(answer);
    return code;
}

static int cmd_reproduce(const struct cmd_args *args)
{
    struct error e;
    struct follow follow = {0};
    json_t *json = NULL;
    struct job job;
    long id, copy = 0;

    if (cmd_job_id(args->operands[0], &id, &e) < 0)
        return cmd_fail(&e);
    if (cmd_flag(args, "check"))
        return reproduce_tell(id);
    if (reproduce_submit_again(args, id, &copy, &e) < 0)
        return cmd_fail(&e);
    if (cmd_flag(args, "no-wait")) {
        if (client.json)
            printf("{\"job\": %ld, \"reproduces\": %ld}\n", copy, id);
        return 0;
    }
    follow.id = copy;
    int outcome = client.json ? follow_job(&follow, &json, &e) : watch_until_end(copy, true);
    json_decref(json);
    json = NULL;
    if (outcome < 0)
        outcome = cmd_fail(&e);
    if (outcome == error_type(ERR_INTERRUPTED)->exit_code) {
        bool ended = job_fetch(copy, &json, &job, &e) == 0 && job_ended(&job);
        json_decref(json);
        if (!ended)
            return outcome;
    }
    return reproduce_tell(copy);
}

/* clang-format off */
const struct cmd cmd_reproduce_entry = {
    .name = "reproduce", .synopsis = "[--force] [--set KEY=VALUE...] [--no-wait] ID | --check ID",
    .help = "rerun a job and check that the result is bit-identical", .example = "trainctl reproduce 7",
    .run = cmd_reproduce, .completion = "job", .operands = {1, 1},
    .options = {
        OPTION("force", 0, NULL, "submit it even if this machine or the data differ", NULL),
        OPTION("set", 0, "KEY=VALUE", "change a key, e.g. cluster.threads_per_worker=1", "key"),
        OPTION("no-wait", 0, NULL, "do not wait for its end; run reproduce --check later", NULL),
        OPTION("check", 0, NULL, "submit nothing: compare a job that reproduces another with the original", NULL),
    },
};
/* clang-format on */
