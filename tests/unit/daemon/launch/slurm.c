/* What is handed to Slurm, and what is read from it. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/job/job_document.h"
#include "common/job/recipe/preset.h"
#include "daemon/launch/slurm.h"
#include "daemon/launch/slurm_call.h"
#include "daemon/launch/slurm_reply.h"
#include "daemon/launch/slurm_script.h"

static struct job_spec *slurm_spec(const char *text)
{
    struct problems problems = {0};
    json_t *document = json_loads(text, 0, NULL);
    struct job_spec *spec = job_spec_parse(document, preset_lookup, NULL, &problems);

    json_decref(document);
    problems_clear(&problems);
    cr_assert_not_null(spec, "%s", text);
    return spec;
}

#define JOB                                                                                        \
    "{\"data\": {\"train\": \"synthetic\"}, \"cluster\": {\"launcher\": \"slurm\", \"nodes\": 3, " \
    "\"workers_per_node\": 4, \"threads_per_worker\": 5, \"partition\": \"p,q\", "                 \
    "\"constraint\": \"a&b\", \"time_limit\": \"1:00:00\"}}"

static const struct slurm_settings plain = {.account = "a \"c\" $x", .options = "--exclusive"};

static struct launch_request slurm_attempt_request(const struct job_spec *spec, const char *run_dir)
{
    return (struct launch_request){
        .job_id = 7,
        .attempt = 2,
        .run_dir = run_dir,
        .spec = spec,
        .threads = 5,
        .mpirun = "/opt/open mpi/mpirun",
        .worker = "/opt/it's/train-worker",
        .slurm = &plain,
        .created_at = 1.5,
        .time_limit_seconds = 3600,
        .lead_seconds = 60,
    };
}

static void expect_line(const char *text, const char *line)
{
    cr_assert_not_null(strstr(text, line), "%s\nlacks\n%s", text, line);
}

Test(slurm, a_script_contains_the_whole_plan_quoted)
{
    struct job_spec *spec = slurm_spec(JOB);
    struct launch_request r = slurm_attempt_request(spec, "/state/my run's/7");
    char *text;
    struct error e;

    cr_assert_eq(slurm_script(&r, &text, &e), 0, "%s", e.text);
    expect_line(text, "#!/bin/sh\n");
    expect_line(text, "#SBATCH --nodes=3 --ntasks-per-node=4 --cpus-per-task=5\n");
    expect_line(text, "#SBATCH --chdir=\"/state/my run's/7/attempt-2\"\n");
    expect_line(text, "#SBATCH --partition=\"p,q\"\n");
    expect_line(text, "#SBATCH --account=\"a \\\"c\\\" $x\"\n#SBATCH --constraint=\"a&b\"\n");
    expect_line(text, "#SBATCH --time=\"1:00:00\"\n#SBATCH --signal=B:USR1@60\n");
    expect_line(text, "#SBATCH --exclusive\n");
    expect_line(text, "\numask 077\nrun='/state/my run'\\''s/7'\n");
    expect_line(text, "\n'/opt/open mpi/mpirun' ");
    expect_line(text, "#SBATCH --threads-per-core=1\n");
    expect_line(text,
                "\nplace=$('/opt/it'\\''s/train-worker' --placement \"$run/job.json\") || {\n");
    expect_line(text, " -np 12 $place ");
    expect_line(text, "OMP_PROC_BIND=close OMP_PLACES=cores ");
    expect_line(text, " -x OMP_PROC_BIND -x OMP_PLACES ");
    expect_line(text, "    '/opt/it'\\''s/train-worker' --job \"$run/job.json\"");
    expect_line(text, "-lt 3540 ]");
    expect_line(text, "PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1\n");
    free(text);
    job_spec_destroy(spec);
}

static void script_has(bool srun, const char *cluster, const char *line)
{
    struct slurm_settings settings = {.srun = srun};
    struct error e;
    char document[256], *text;

    snprintf(document, sizeof document,
             "{\"data\": {\"train\": \"synthetic\"}, \"cluster\": {\"launcher\": \"slurm\", %s}}",
             cluster);
    struct job_spec *spec = slurm_spec(document);
    struct launch_request r = slurm_attempt_request(spec, "/state/7");
    r.slurm = &settings;
    cr_assert_eq(slurm_script(&r, &text, &e), 0, "%s", e.text);
    expect_line(text, line);
    if (spec->cluster.smt)
        cr_assert_null(strstr(text, "--threads-per-core"));
    free(text);
    job_spec_destroy(spec);
}

Test(slurm, ranks_are_bound_as_the_document_says)
{
    static const char *const srun[][2] = {
        {"\"bind\": \"auto\"",                " --distribution=block:cyclic --cpu-bind=cores"  },
        {"\"bind\": \"socket\"",              " --distribution=block:cyclic --cpu-bind=cores"  },
        {"\"bind\": \"core\"",                " --distribution=block:block --cpu-bind=cores"   },
        {"\"bind\": \"none\"",                " --cpu-bind=none"                               },
        {"\"bind\": \"numa\", \"smt\": true", " --distribution=block:cyclic --cpu-bind=threads"},
        {"\"bind\": \"core\", \"smt\": true", "OMP_PROC_BIND=close OMP_PLACES=threads "        },
        {"\"bind\": \"none\"",                "OMP_PROC_BIND=false OPENBLAS"                   },
    };

    for (size_t i = 0; i < sizeof srun / sizeof srun[0]; i++)
        script_has(true, srun[i][0], srun[i][1]);
    script_has(false, "\"bind\": \"none\"",
               "\nplace='--map-by slot:OVERSUBSCRIBE --bind-to none'\n");
    script_has(false, "\"bind\": \"none\"", " -x OMP_PROC_BIND -x OPENBLAS");
}

Test(slurm, a_path_that_slurm_would_change_is_refused)
{
    struct job_spec *spec = slurm_spec(JOB);
    struct launch_request r = slurm_attempt_request(spec, "/state/100%j/7");
    char *text;
    struct error e;

    cr_assert_eq(slurm_script(&r, &text, &e), -(int)ERR_INVALID);
    cr_assert_not_null(strstr(e.text, "%"));
    job_spec_destroy(spec);
}

Test(slurm, a_name_is_unique_to_a_job_and_a_daemon)
{
    struct job_spec *spec = slurm_spec(JOB);
    struct launch_request r = slurm_attempt_request(spec, "/state/7"),
                          other = slurm_attempt_request(spec, "/other/7");
    char a[SLURM_NAME_BYTES], b[SLURM_NAME_BYTES];

    slurm_job_name(&r, a);
    slurm_job_name(&r, b);
    cr_assert_str_eq(a, b);
    cr_assert_eq(strncmp(a, "traind-7-2-", 11), 0);
    slurm_job_name(&other, b);
    cr_assert_str_neq(a, b);
    r.created_at = 2;
    slurm_job_name(&r, b);
    cr_assert_str_neq(a, b);
    job_spec_destroy(spec);
}

/* ---------------------------------------------------------------- replies */

static struct slurm_reply read_reply(const char *text, json_t **json)
{
    struct slurm_reply r;

    *json = json_loads(text, 0, NULL);
    cr_assert(slurm_reply_read(*json, &r), "%s", text);
    return r;
}

Test(slurm, both_forms_of_a_job_are_read)
{
    json_t *old, *new;
    struct slurm_reply a = read_reply(
        "{\"job_id\": 3, \"name\": \"x\", \"job_state\": \"FAILED\", \"state_reason\": \"None\", "
        "\"restart_cnt\": 1, \"exit_code\": 512, \"time_limit\": 10, \"start_time\": 9}",
        &old);
    struct slurm_reply b = read_reply(
        "{\"job_id\": 3, \"name\": \"x\", \"job_state\": [\"FAILED\", \"COMPLETING\"], "
        "\"state_reason\": \"None\", \"restart_cnt\": 1, \"exit_code\": {\"return_code\": "
        "{\"set\": true, \"infinite\": false, \"number\": 2}, \"signal\": {\"signal_id\": "
        "{\"set\": false, \"number\": 0}}}, \"time_limit\": {\"set\": true, \"infinite\": false, "
        "\"number\": 10}, \"start_time\": {\"set\": true, \"number\": 9}}",
        &new);

    cr_assert(a.id == 3 && b.id == 3 && a.restarts == 1 && b.restarts == 1);
    cr_assert_str_eq(a.state, "FAILED");
    cr_assert_str_eq(b.state, "FAILED");
    cr_assert(!a.completing && b.completing);
    cr_assert(a.exit_code == 2 && b.exit_code == 2 && a.exit_signal == -1 && b.exit_signal == -1);
    cr_assert(a.limit_seconds == 600 && b.limit_seconds == 600);
    cr_assert(a.start == 9 && b.start == 9);
    json_decref(old);
    json_decref(new);
}

Test(slurm, malformed_answers_give_no_job)
{
    static const char *const texts[] = {"null",
                                        "[]",
                                        "{}",
                                        "{\"job_id\": \"3\"}",
                                        "{\"job_id\": 3, \"job_state\": 7}",
                                        "{\"job_id\": 0, \"job_state\": \"RUNNING\"}"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct slurm_reply r;
        json_t *json = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        cr_assert_not(slurm_reply_read(json, &r), "%s", texts[i]);
        json_decref(json);
    }
}

static void waiting_is(const char *reason, int64_t ahead, const char *words)
{
    struct slurm_reply r = {.reason = reason};
    char text[512];

    slurm_reply_waiting(&r, ahead, text, sizeof text);
    cr_assert_str_eq(text, words);
}

Test(slurm, slurms_reasons_are_worded)
{
    waiting_is("Priority", 3, "waiting for priority: 3 jobs ahead [Priority]");
    waiting_is("Priority", 1, "waiting for priority: 1 job ahead [Priority]");
    waiting_is("ReqNodeNotAvail,_UnavailableNodes:n[1-2]", 0,
               "waiting for nodes that are down or reserved "
               "[ReqNodeNotAvail,_UnavailableNodes:n[1-2]]");
    waiting_is("AssocGrpBillingMinutes", 0,
               "waiting for a limit of its account [AssocGrpBillingMinutes]");
    waiting_is("SomethingNew", 0, "waiting in Slurm's queue [SomethingNew]");
    waiting_is("None", 0, "waiting for Slurm to consider it");
}

Test(slurm, queue_position_counts_same_partition_higher_priority_or_older)
{
    json_t *mine,
        *all = json_loads(
            "[{\"job_id\": 1, \"job_state\": \"RUNNING\", \"partition\": \"a\", \"priority\": 9},"
            " {\"job_id\": 2, \"job_state\": \"PENDING\", \"partition\": \"a\", \"priority\": 5},"
            " {\"job_id\": 3, \"job_state\": \"PENDING\", \"partition\": \"b\", \"priority\": 9},"
            " {\"job_id\": 5, \"job_state\": \"PENDING\", \"partition\": \"a\", \"priority\": 9},"
            " {\"job_id\": 6, \"job_state\": \"PENDING\", \"partition\": \"a\", \"priority\": 5}]",
            0, NULL);
    struct slurm_reply r = read_reply(
        "{\"job_id\": 4, \"job_state\": \"PENDING\", \"partition\": \"a\", \"priority\": 5}",
        &mine);

    cr_assert_eq(slurm_reply_ahead(all, &r), 2);
    json_decref(mine);
    json_decref(all);
}

Test(slurm, a_lost_answer_is_not_a_refusal)
{
    cr_assert(slurm_call_is_unclear("sbatch: error: Batch job submission failed: Unable to contact "
                                    "slurm controller (connect failure)"));
    cr_assert(slurm_call_is_unclear("Socket timed out on send/recv operation"));
    cr_assert_not(slurm_call_is_unclear("sbatch: error: Batch job submission failed: Invalid "
                                        "partition name specified"));
    cr_assert_not(slurm_call_is_unclear("sbatch: error: invalid account specified"));
}
