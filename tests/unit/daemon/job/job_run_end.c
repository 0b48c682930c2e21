/* The verdict on a job that Slurm ended. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/job/job_run_end.h"
#include "tests/unit/folder.h"

TestSuite(job_run_end, .init = make_folder, .fini = remove_folder);

static struct verdict judge_slurm(const char *state)
{
    struct slurm_status slurm = {.phase = SLURM_ENDED, .job_id = 12};
    struct slurm_end end = {.slurm = &slurm, .attempt = 1, .begun = true};
    struct launch_exit how = {1, -1};
    struct verdict v;

    snprintf(slurm.state, sizeof slurm.state, "%s", state);
    snprintf(slurm.nodes, sizeof slurm.nodes, "n[1-2]");
    failure_judge(folder, &how, FAILURE_NOT_STOPPED, &v);
    job_run_slurm_verdict(&end, &v);
    return v;
}

/* The node at fault, where Slurm leaves no doubt. */
Test(job_run_end, blames_the_only_node_of_an_allocation)
{
    static const struct {
        const char *state, *reason, *nodes, *blamed;
    } cases[] = {
        {"NODE_FAIL", "None",             "n1",     "n1"},
        {"BOOT_FAIL", "None",             "n1",     "n1"},
        {"FAILED",    "JobLaunchFailure", "n1",     "n1"},
        {"NODE_FAIL", "None",             "n[1-2]", ""  },
        {"NODE_FAIL", "None",             "n1,n2",  ""  },
        {"FAILED",    "NonZeroExitCode",  "n1",     ""  },
    };

    write_in_folder("events.jsonl", "");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct slurm_status slurm = {.phase = SLURM_ENDED, .job_id = 12};
        struct slurm_end end = {.slurm = &slurm, .attempt = 1};
        struct verdict v = {.state = JOB_FAILED, .who = {.rank = -1}};
        snprintf(slurm.state, sizeof slurm.state, "%s", cases[i].state);
        snprintf(slurm.reason, sizeof slurm.reason, "%s", cases[i].reason);
        snprintf(slurm.nodes, sizeof slurm.nodes, "%s", cases[i].nodes);
        job_run_slurm_verdict(&end, &v);
        cr_assert_str_eq(v.bad_node, cases[i].blamed, "%s %s", cases[i].state, cases[i].nodes);
    }
}

#define STEP "{\"type\": \"step\", \"step\": 7}\n"
#define FAILED                                                                                     \
    "{\"type\": \"failed\", \"rank\": 3, \"host\": \"n2\", \"phase\": \"train\", \"reason\": "     \
    "\"cannot read /data/x: Input/output error\"}\n"

Test(job_run_end, the_message_of_a_rank_follows_slurms_reason)
{
    static const char *const states[] = {"NODE_FAIL", "PREEMPTED", "CANCELLED", "OUT_OF_MEMORY"};

    write_in_folder("events.jsonl", STEP FAILED);
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        struct verdict v = judge_slurm(states[i]);
        cr_assert_eq(strncmp(v.reason, "Slurm ended its job 12 on n[1-2]: ", 34), 0, "%s",
                     v.reason);
        cr_assert_not_null(strstr(v.reason, states[i]), "%s", v.reason);
        cr_assert_not_null(strstr(v.reason, "]; the last step was 7; cannot read /data/x: "
                                            "Input/output error (rank 3 on n2, phase train)"),
                           "%s", v.reason);
        cr_assert_eq(v.who.rank, 3);
    }
}

Test(job_run_end, without_a_message_of_a_rank_slurms_reason_is_used)
{
    write_in_folder("events.jsonl", STEP);
    struct verdict v = judge_slurm("NODE_FAIL");
    cr_assert_str_eq(v.reason,
                     "Slurm ended its job 12 on n[1-2]: one of its nodes failed [NODE_FAIL]; "
                     "the last step was 7");
    cr_assert(v.outside);
}

/* Seen where the folder of slurmd had vanished: exit code 2 is slurmstepd's "No such file or
 * directory". */
Test(job_run_end, a_script_that_did_not_begin_is_not_blamed_on_mpirun)
{
    struct slurm_status slurm = {.phase = SLURM_ENDED,
                                 .job_id = 12,
                                 .state = "FAILED",
                                 .reason = "NonZeroExitCode",
                                 .nodes = "n1"};
    struct slurm_end end = {.slurm = &slurm, .attempt = 2};
    struct launch_exit how = {2, -1};
    struct verdict v;

    write_in_folder("events.jsonl", "");
    for (int begun = 0; begun < 2; begun++) {
        end.begun = begun;
        failure_judge(folder, &how, FAILURE_NOT_STOPPED, &v);
        job_run_slurm_verdict(&end, &v);
        cr_assert_str_eq(v.reason, begun ? "mpirun ended with exit code 2"
                                         : "Slurm's job 12 ended on n1 before its script had begun "
                                           "[FAILED]; see attempt-2/slurm.log");
        cr_assert_eq(v.outside, !begun);
    }
}

Test(job_run_end, a_requeued_job_names_the_cause_if_known)
{
    static const struct {
        bool begun;
        int64_t step;
        const char *refused, *why;
    } cases[] = {
        {true,  7, NULL,            " (requeued, preempted, or a node failed) after step 7"                  },
        {true,  7, "node n1: slow", " (requeued, preempted, or a node failed) after step 7"                  },
        {true,  0, "node n1: slow", ", as its prolog drained node n1: slow"                                  },
        {false, 0, "node n1: slow", ", as its prolog drained node n1: slow"                                  },
        {false, 0, NULL,            " before its script had begun (requeued, or a node or its prolog failed)"},
    };
    char wanted[256];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct slurm_status slurm = {.phase = SLURM_WAITING, .job_id = 12};
        struct slurm_end end = {
            .slurm = &slurm, .begun = cases[i].begun, .refused = cases[i].refused};
        struct verdict v = {.state = JOB_QUEUED, .step = cases[i].step};
        job_run_slurm_put_back(&end, &v);
        snprintf(wanted, sizeof wanted, "Slurm put its job 12 back into the queue%s", cases[i].why);
        cr_expect_str_eq(v.reason, wanted);
        cr_expect_eq(v.goes_on, !cases[i].begun);
    }
}
