/* Failure rules: their file, what they fit, and what follows of it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/job/job_state_machine.h"
#include "daemon/launch/failure_rules.h"
#include "tests/unit/folder.h"

TestSuite(failure_rules, .init = make_folder, .fini = remove_folder);

static int load(const char *text, struct failure_rules **rules, struct error *e)
{
    write_in_folder("rules", text);
    return failure_rules_load(in_folder("rules"), rules, e);
}

static const char *label_of(const struct failure_rules *rules, const char *reason, const char *log,
                            char label[FAILURE_LABEL_BYTES])
{
    struct verdict v = {.state = JOB_FAILED};

    snprintf(v.reason, sizeof v.reason, "%s", reason);
    write_in_folder("stdout.log", log);
    failure_rules_apply(rules, folder, &v);
    memcpy(label, v.label, FAILURE_LABEL_BYTES);
    return label;
}

Test(failure_rules, labels_the_messages_of_programs)
{
    static const char *const cases[][3] = {
        {"disk-full",     "cannot write /s/model.safetensors: No space left on device",   ""        },
        {"out-of-memory", "Slurm ended its job 7 on n1: out of memory [OUT_OF_MEMORY]",   ""        },
        {"out-of-memory", "rank 0 ended with exit code 1",
         "a\ncannot map: Cannot allocate memory\nb\n"                                               },
        {"bus-error",     "rank 3 on n2 was ended by signal 7 (SIGBUS, Bus error)",       ""        },
        {"bad-node",
         "host n2 no longer answers: its network, the machine or Open MPI's daemon there is "
         "failed",                                                                        ""        },
        {"bad-node",      "Slurm ended its job 7 on n1: a node failed [NODE_FAIL]",       ""        },
        {"diverged",      "diverged at step 12, the loss was nan: try a smaller lr.base", ""        },
        {"stalled",       "all ranks wait for each other: no step ended for 300 s",       ""        },
        {"stalled",       "rank 2 on n1 does not report while others wait for it: 300 s", ""        },
        {"stalled",       "no rank reports any more: no step ended for 300 s",            ""        },
        {"time-limit",    "Slurm's job 7 reached its time limit after step 3",            ""        },
        {"mpi-transport", "rank 0 ended with exit code 1",
         "[n1][[1,1],0][btl_tcp_frag.c:242:mca_btl_tcp_frag_recv] readv failed: Connection reset "
         "by peer (104)\n"                                                                          },
        {"",              "mpirun ended with exit code 7",
         "[n1][[1,1],0][btl_tcp_proc.c:266:mca_btl_tcp_proc_create_interface_graph] Unable to find "
         "reachable pairing between local and remote interfaces\n"                                  },
        {"",
         "rank 0 on n1 was ended by signal 9 (SIGKILL, Killed); unless someone killed it, the "
         "kernel "
         "ran out of memory: see dmesg",                                                  "step 1\n"},
        {"",              "rank 0 ended with exit code 7",                                ""        },
    };
    char label[FAILURE_LABEL_BYTES];
    struct failure_rules *rules;
    struct error e;

    cr_assert_eq(failure_rules_load(NULL, &rules, &e), 0, "%s", e.text);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        cr_assert_str_eq(label_of(rules, cases[i][1], cases[i][2], label), cases[i][0], "%s",
                         cases[i][1]);
    failure_rules_destroy(rules);
}

Test(failure_rules, reason_before_log_and_file_before_built_in_rules)
{
    char label[FAILURE_LABEL_BYTES];
    struct failure_rules *rules;
    struct error e;

    cr_assert_eq(
        load("# own\n\n  scratch   no-restart,drain-unverified \t /scratch.*No space left\n"
             "bus-error restart never said\n",
             &rules, &e),
        0, "%s", e.text);
    cr_assert_str_eq(label_of(rules, "/scratch/x: No space left on device", "", label), "scratch");
    cr_assert_str_eq(label_of(rules, "/data/x: No space left on device", "", label), "disk-full");
    cr_assert_str_eq(label_of(rules, "signal 7 (SIGBUS", "", label), "", "ours is replaced");
    cr_assert_str_eq(label_of(rules, "diverged at step 3", "/scratch: No space left\n", label),
                     "diverged");
    failure_rules_destroy(rules);
}

Test(failure_rules, names_every_wrong_line)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"Upper - x",                               "line 1: the label must be 1 to 32 lower-case letters"       },
        {"none - x",                                "line 1: the label must be"                                  },
        {"a",                                       "line 1: the actions are missing"                            },
        {"a -",                                     "line 1: the pattern is missing"                             },
        {"a no-restrat x",                          "no action \"no-restrat\"; did you mean \"no-restart\"?"     },
        {"a restart,no-restart x",                  "\"no-restart\" cannot be combined with the action before it"},
        {"a notify=ftp://h/ x",                     "line 1: notify \"ftp://h/\" "                               },
        {"a notify= x",                             "line 1: notify \"\" "                                       },
        {"a notify-text=https://eve:pw@h/ x",       "a user name or password"                                    },
        {"a notify=mailto:a@h,notify=mailto:b@h x", "a rule has only one target"                                 },
        {"a notfy x",                               "no action \"notfy\""                                        },
        {"a - (x",                                  "line 1: \"(x\" is not a POSIX extended regular expression"  },
        {"a - (x)\\1",                              "not contain back references"                                },
        {"a - x*",                                  "matches every line"                                         },
        {"\n\nb - (\na - x\nc c",                   "line 3: \"(\" is not a POSIX"                               },
        {"\n\nb - (\na - x\nc c x",                 "line 5: there is no action \"c\""                           },
    };
    struct failure_rules *rules;
    struct error e;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(load(cases[i].line, &rules, &e), -ERR_USAGE, "%s", cases[i].line);
        cr_assert_not_null(strstr(e.text, cases[i].says), "%s", e.text);
        cr_assert_not_null(strstr(e.text, in_folder("rules")), "%s", e.text);
        cr_assert_null(rules);
    }
    cr_assert_eq(failure_rules_load("/none/rules", &rules, &e), -ERR_USAGE);
    cr_assert_not_null(strstr(e.text, "/none/rules"), "%s", e.text);
}

Test(failure_rules, a_rule_may_notify_a_target)
{
    static const char text[] = "a notify=https://h/x?y=1,no-restart boom\n"
                               "b notify-text=mailto:eve@h.org bang\nc - quiet\n";
    struct failure_rules *rules;
    struct error e;

    cr_assert_eq(load(text, &rules, &e), 0, "%s", e.text);
    struct verdict v = {.state = JOB_FAILED, .reason = "boom"};
    failure_rules_apply(rules, NULL, &v);
    cr_assert_str_eq(v.notify, "https://h/x?y=1");
    cr_assert_eq(v.notify_format, NOTICE_JSON);
    cr_assert_eq(v.again, FAILURE_NOT_AGAIN);
    snprintf(v.reason, sizeof v.reason, "bang");
    failure_rules_apply(rules, NULL, &v);
    cr_assert_str_eq(v.notify, "mailto:eve@h.org");
    cr_assert_eq(v.notify_format, NOTICE_TEXT);
    snprintf(v.reason, sizeof v.reason, "quiet");
    failure_rules_apply(rules, NULL, &v);
    cr_assert_str_eq(v.notify, "");
    failure_rules_destroy(rules);
}

Test(failure_rules, the_number_of_rules_is_bounded)
{
    char text[FAILURE_RULES_MAX * 16] = "";
    struct failure_rules *rules;
    struct error e;

    for (int i = 0; i < FAILURE_RULES_MAX + 1; i++)
        sprintf(text + strlen(text), "l%d - x%d\n", i, i);
    cr_assert_eq(load(text, &rules, &e), -ERR_USAGE);
    cr_assert_not_null(strstr(e.text, "more than 64 rules"), "%s", e.text);
}

/* What is searched is bounded: the last lines, and their beginnings. */
Test(failure_rules, only_the_end_of_a_log_is_searched)
{
    size_t bytes = (FAILURE_RULES_LINES + 2) * (size_t)1024;
    char *log = calloc(1, bytes + 1);
    struct failure_rules *rules;
    struct error e;

    cr_assert_eq(load("word - word$\n", &rules, &e), 0, "%s", e.text);
    strcpy(log, "word\n");
    for (int i = 0; i < FAILURE_RULES_LINES - 1; i++)
        strcat(log, "line\n");
    cr_assert_eq(failure_rules_find(rules, "", log), 0);
    strcat(log, "line\n");
    cr_assert_eq(failure_rules_find(rules, "", log), -1);
    memset(log, 'a', 600);
    strcpy(log + 600, "word\n");
    cr_assert_eq(failure_rules_find(rules, "", log), -1);
    memset(log, 'a', 500);
    strcpy(log + 500, "word\n");
    cr_assert_eq(failure_rules_find(rules, "", log), 0);
    free(log);
    failure_rules_destroy(rules);
}

Test(failure_rules, only_failures_are_labelled)
{
    struct verdict v = {.state = JOB_CANCELLED, .reason = "No space left on device"};
    struct failure_rules *rules;
    struct error e;

    cr_assert_eq(failure_rules_load(NULL, &rules, &e), 0, "%s", e.text);
    failure_rules_apply(rules, folder, &v);
    cr_assert_str_eq(v.label, "");
    v.state = JOB_FAILED;
    v.goes_on = true;
    failure_rules_apply(rules, folder, &v);
    cr_assert_str_eq(v.label, "");
    v.goes_on = false;
    failure_rules_apply(rules, folder, &v);
    cr_assert_str_eq(v.label, "disk-full");
    failure_rules_destroy(rules);
}

static bool restarts(const struct verdict *v, int64_t max)
{
    struct attempt_history h = {.restarts_max = max, .trains = true, .ran = true};
    struct attempt_outcome end;

    job_state_after_attempt(v, &h, &end);
    return end.restarts;
}

Test(failure_rules, decide_about_the_restart_within_its_limit)
{
    struct verdict ran = {.state = JOB_FAILED, .step = 3}, early = {.state = JOB_FAILED};

    cr_assert(restarts(&ran, 1));
    ran.again = FAILURE_NOT_AGAIN;
    cr_assert_not(restarts(&ran, 1));
    cr_assert_not(restarts(&early, 1));
    early.again = FAILURE_AGAIN;
    cr_assert(restarts(&early, 1));
    cr_assert_not(restarts(&early, 0));
    early.state = JOB_CANCELLED;
    cr_assert_not(restarts(&early, 1));
}

Test(failure_rules, counts_stay_when_the_rules_change)
{
    struct failure_rules *before, *after;
    int64_t unlabelled;
    struct error e;

    cr_assert_eq(load("gone - x\n", &before, &e), 0, "%s", e.text);
    failure_rules_count(before, "gone");
    failure_rules_count(before, "disk-full");
    failure_rules_count(before, "");
    cr_assert_eq(failure_rules_load(NULL, &after, &e), 0, "%s", e.text);
    failure_rules_inherit(after, before);
    json_t *list = failure_rules_to_json(after, &unlabelled);
    cr_assert_eq(unlabelled, 2);
    cr_assert_eq(json_integer_value(json_object_get(json_array_get(list, 0), "count")), 1);
    json_decref(list);
    failure_rules_destroy(before);
    failure_rules_destroy(after);
}
