#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/launch/failure.h"
#include "tests/unit/folder.h"

#define RULE "--------------------------------------------------------------------------\n"
#define ABORTED                                                                                    \
    RULE "Primary job  terminated normally, but 1 process returned\n"                              \
         "a non-zero exit code. Per user-direction, the job has been aborted.\n" RULE

/* As Open MPI 4.1.4 printed them on Debian 12. */
static const char killed[] =
    "2026-11-21T13:47:02.000Z info: rank 1: epoch 1\n" ABORTED RULE
    "mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9 (Killed).\n" RULE;

static const char crashed[] =
    "step 3, loss 2.1\n"
    "[vm:00571] *** Process received signal ***\n"
    "[vm:00571] Signal: Segmentation fault (11)\n"
    "[vm:00571] [ 0] /lib/x86_64-linux-gnu/libc.so.6(+0x3c050)[0x7f8a7f9cc050]\n"
    "[vm:00571] *** End of error message ***\n" ABORTED RULE
    "mpirun noticed that process rank 17 with PID 571 on node node-12.cluster exited on signal 11 "
    "(Segmentation fault).\n" RULE;

static const char non_zero[] =
    "error: bad thing\n" ABORTED RULE
    "mpirun detected that one or more processes exited with non-zero status, thus causing\n"
    "the job to be terminated. The first process to do so was:\n"
    "\n"
    "  Process name: [[28351,1],1]\n"
    "  Exit code:    4\n" RULE;

static const char mpi_abort[] =
    RULE "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n"
         "with errorcode 3.\n"
         "\n"
         "NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\n"
         "You may or may not see output from other processes, depending on\n"
         "exactly when Open MPI kills them.\n" RULE;

/* As Open MPI 5.0.7 printed them on Debian 13. */
static const char killed_5[] =
    RULE "prterun noticed that process rank 1 with PID 44 on node vm exited on\n"
         "signal 9 (Killed).\n" RULE;

static const char non_zero_5[] =
    RULE "prterun detected that one or more processes exited with non-zero status,\n"
         "thus causing the job to be terminated. The first process to do so was:\n"
         "\n"
         "   Process name: [prterun-node-12,a-13@1,17]\n"
         "   Exit code:    4\n" RULE;

static const char mpi_abort_5[] =
    "step 3, loss 2.1\n"
    "[vm][[48406,1],0][../../opal/mca/btl/tcp/btl_tcp_proc.c:266:mca_btl_tcp_proc_create_interface_"
    "graph] Unable to find reachable pairing between local and remote interfaces\n" RULE
    "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n"
    "  Proc: [[48406,1],1]\n"
    "  Errorcode: 7\n"
    "\n"
    "NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\n" RULE RULE
    "prterun has exited due to process rank 1 with PID 0 on node vm calling\n"
    "\"abort\". This may have caused other processes in the application to be\n"
    "terminated by signals sent by prterun (as reported here).\n" RULE;

static const char lost_5[] = RULE "PRTE has lost communication with a remote daemon.\n\n"
                                  "  HNP daemon   : [prterun-n1-13@0,0] on node n1\n"
                                  "  Remote daemon: [prterun-n1-13@0,1] on node n2.cluster\n" RULE;

#define CLOSED_5                                                                                   \
    "[n1:00000] *** An error occurred in Socket closed\n"                                          \
    "[n1:00000] *** reported by process [339410945,1]\n"                                           \
    "[n1:00000] *** on a NULL communicator\n"                                                      \
    "[n1:00000] *** Unknown error\n"                                                               \
    "[n1:00000] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,\n"        \
    "[n1:00000] ***    and MPI will try to terminate your MPI job as well)\n"

/* A rank of another host was killed, and the ranks of this one knew first. */
static const char closed_5[] =
    "step 2\n" CLOSED_5 RULE
    "prterun has exited due to process rank 1 with PID 0 on node n1 calling\n"
    "\"abort\". This may have caused other processes in the application to be\n"
    "terminated by signals sent by prterun (as reported here).\n" RULE
    " 3 more processes have sent help message help-mpi-errors.txt / mpi_errors_are_fatal unknown "
    "handle\n"
    " 1 more process has sent help message help-mpi-errors.txt / mpi_errors_are_fatal unknown "
    "handle\n";

/* The same where they waited. */
static const char closed_and_killed_5[] =
    "step 2\n" CLOSED_5 " [n1:01851] Delaying for 5 seconds before aborting\n"
    "[n2:01869] Delaying for 5 seconds before aborting\n" RULE
    "prterun noticed that process rank 3 with PID 1870 on node n2 exited on\n"
    "signal 9 (Killed).\n" RULE;

/* By UCX, which Open MPI 5 of Debian 13 loads. */
static const char crashed_5[] =
    "step 2\n"
    "[n2:8046 :0:8046] Caught signal 11 (Segmentation fault: tkill(2) or tgkill(2) at address "
    "0x1f6e)\n"
    "==== backtrace (tid:   8046) ====\n"
    " 0  /lib/x86_64-linux-gnu/libucs.so.0(ucs_handle_error+0x2bc) [0x7fe228b8964c]\n"
    "14  /opt/libtraincomm.so.2(traincomm_gradients_wait+0xe4) [0x7fe22bfcbcf4]\n"
    "20  /opt/train-worker(+0x17a61) [0x560e3fd1ca61]\n"
    "=================================\n" CLOSED_5 RULE
    "prterun noticed that process rank 3 with PID 8046 on node n2 exited on\n"
    "signal 11 (Segmentation fault).\n" RULE;

static const char mpi_error[] =
    "words of a worker\n"
    "[vm:26912] *** An error occurred in MPI_Allreduce\n"
    "[vm:26912] *** reported by process [99221505,1]\n"
    "[vm:26912] *** on communicator MPI COMMUNICATOR 7 DUP FROM 6\n"
    "[vm:26912] *** MPI_ERR_INTERN: internal error\n"
    "[vm:26912] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,\n"
    "[vm:26912] ***    and potentially your MPI job)\n";

static const char not_launched[] =
    RULE "mpirun was unable to launch the specified application as it could not access\n"
         "or execute an executable:\n\nExecutable: /opt/train-worker\nNode: vm\n\n"
         "while attempting to start process rank 0.\n" RULE "2 total processes failed to start\n";

static const char lost[] = RULE "ORTE has lost communication with a remote daemon.\n\n"
                                "  HNP daemon   : [[27382,0],0] on node n1\n"
                                "  Remote daemon: [[27382,0],1] on node n2.cluster\n\n" RULE;

Test(failure, reads_mpiruns_message_of_a_killed_rank)
{
    struct failure_rank r;
    cr_assert(failure_read_log(killed, &r));
    cr_assert_eq(r.rank, 1);
    cr_assert_eq(r.signal, 9);
    cr_assert_str_eq(r.host, "vm");
    cr_assert(failure_read_log(crashed, &r));
    cr_assert_eq(r.rank, 17);
    cr_assert_eq(r.signal, 11);
    cr_assert_str_eq(r.host, "node-12.cluster");
    cr_assert(failure_read_log(killed_5, &r));
    cr_assert_eq(r.rank, 1);
    cr_assert_eq(r.signal, 9);
    cr_assert_str_eq(r.host, "vm");
    cr_assert(failure_read_log(lost_5, &r));
    cr_assert(r.host_lost);
    cr_assert_str_eq(r.host, "n2.cluster");
}

Test(failure, reads_exit_codes_and_aborts)
{
    struct failure_rank r;
    cr_assert(failure_read_log(non_zero, &r));
    cr_assert_eq(r.rank, 1);
    cr_assert_eq(r.exit_code, 4);
    cr_assert_eq(r.signal, -1);
    cr_assert(failure_read_log(mpi_abort, &r));
    cr_assert(r.aborted);
    cr_assert_eq(r.exit_code, 3);
    cr_assert(failure_read_log(non_zero_5, &r));
    cr_assert_eq(r.rank, 17);
    cr_assert_eq(r.exit_code, 4);
    cr_assert(failure_read_log(mpi_abort_5, &r));
    cr_assert(r.aborted);
    cr_assert_eq(r.rank, 1);
    cr_assert_eq(r.exit_code, 7);
    cr_assert_not(failure_read_log("all is well\n", &r));
    cr_assert_not(failure_read_log("", &r));
    cr_assert_not(failure_read_log(" noticed that process rank", &r));
}

Test(failure, last_lines_are_the_workers_own)
{
    char text[512];
    failure_last_lines(crashed, text, sizeof text);
    cr_assert_str_eq(text, "step 3, loss 2.1");
    failure_last_lines(crashed_5, text, sizeof text);
    cr_assert_str_eq(text, "step 2");
    failure_last_lines("2 /a of 3\n[1, 2]\n[a: 5]\n", text, sizeof text);
    cr_assert_str_eq(text, "2 /a of 3; [1, 2]; [a: 5]");
    failure_last_lines("a\nb\n\nc\n\x1b[31md\n", text, sizeof text);
    cr_assert_str_eq(text, "b; c;  [31md");
    failure_last_lines("no newline", text, sizeof text);
    cr_assert_str_eq(text, "no newline");
    failure_last_lines(mpi_abort, text, sizeof text);
    cr_assert_str_eq(text, "");
    failure_last_lines(mpi_abort_5, text, sizeof text);
    cr_assert_str_eq(text, "step 3, loss 2.1");
}

Test(failure, names_signals)
{
    char text[128];
    failure_signal_words(11, text, sizeof text);
    cr_assert_str_eq(text, "signal 11 (SIGSEGV, Segmentation fault)");
    failure_signal_words(9, text, sizeof text);
    cr_assert_str_eq(text, "signal 9 (SIGKILL, Killed)");
    failure_signal_words(250, text, sizeof text);
    cr_assert_str_eq(text, "signal 250");
}

/* ---------------------------------------------------------------- verdicts on a folder */

static struct verdict judge_failure(const char *events, const char *log, int64_t code,
                                    int64_t signal_number, enum failure_stop why)
{
    struct launch_exit how = {code, signal_number};
    struct verdict verdict;

    make_folder();
    if (events)
        write_in_folder("events.jsonl", events);
    if (log)
        write_in_folder("stdout.log", log);
    failure_judge(folder, &how, why, &verdict);
    remove_folder();
    return verdict;
}

#define RUN_START "{\"seq\": 1, \"t\": 1, \"type\": \"run_start\"}\n"
#define SUCCESS                                                                                    \
    "{\"seq\": 9, \"t\": 9, \"type\": \"run_stop\", \"status\": \"success\", \"step\": 4}\n"
#define STOPPED                                                                                    \
    "{\"seq\": 9, \"t\": 9, \"type\": \"run_stop\", \"status\": \"cancelled\", \"step\": 4}\n"
#define FAILED                                                                                     \
    "{\"seq\": 9, \"t\": 9, \"type\": \"failed\", \"rank\": 3, \"host\": \"n4\", \"phase\": "      \
    "\"data\", "                                                                                   \
    "\"signal\": null, \"reason\": \"shard-2 is damaged at byte 40\"}\n"

Test(failure, end_behind_a_nul_byte_is_read)
{
    static const char events[] = RUN_START "@@@\n" SUCCESS;
    char bytes[sizeof events];
    struct launch_exit how = {0, -1};
    struct verdict v;
    struct error e;

    make_folder();
    for (size_t i = 0; i < sizeof events; i++)
        bytes[i] = events[i] == '@' ? '\0' : events[i];
    cr_assert_eq(file_write_atomic(in_folder("events.jsonl"), bytes, sizeof events - 1, &e), 0);
    failure_judge(folder, &how, FAILURE_NOT_STOPPED, &v);
    remove_folder();
    cr_assert_eq(v.state, JOB_SUCCEEDED, "%s", v.reason);
}

Test(failure, error_of_mpi_itself_is_named)
{
    struct verdict v = judge_failure(RUN_START, mpi_error, 17, -1, FAILURE_NOT_STOPPED);
    cr_assert_eq(v.state, JOB_FAILED);
    cr_assert_eq(v.who.rank, 1);
    cr_assert(strstr(v.reason, "mpirun ended with exit code 17; on rank 1 MPI_Allreduce ended with "
                               "MPI_ERR_INTERN: internal error in phase data"),
              "%s", v.reason);
}

Test(failure, closed_connection_is_not_taken_for_the_rank_that_failed)
{
    struct verdict v = judge_failure(RUN_START, closed_5, 14, -1, FAILURE_NOT_STOPPED);
    cr_assert_str_eq(v.reason, "another rank disappeared: rank 1 on n1 found its "
                               "connection to it closed in phase data; last lines of the log: "
                               "step 2");
    cr_assert_eq(v.who.rank, -1);
    v = judge_failure(RUN_START, closed_and_killed_5, 137, -1, FAILURE_NOT_STOPPED);
    cr_assert_str_eq(v.reason,
                     "rank 3 on n2 was ended by signal 9 (SIGKILL, Killed) in phase "
                     "data; unless someone killed it, the kernel ran out of memory: see dmesg; "
                     "last lines of the log: step 2");
    cr_assert_eq(v.who.rank, 3);
    v = judge_failure(RUN_START, CLOSED_5, 14, -1, FAILURE_NOT_STOPPED);
    cr_assert_str_eq(v.reason, "mpirun ended with exit code 14 in phase data");
}

Test(failure, success_needs_its_run_stop)
{
    cr_assert_eq(judge_failure(RUN_START SUCCESS, "done\n", 0, -1, FAILURE_NOT_STOPPED).state,
                 JOB_SUCCEEDED);
    /* found again after a restart of the daemon: the exit is not known */
    cr_assert_eq(judge_failure(RUN_START SUCCESS, "done\n", -1, -1, FAILURE_NOT_STOPPED).state,
                 JOB_SUCCEEDED);
    struct verdict v = judge_failure(RUN_START, "step 1\n", 0, -1, FAILURE_NOT_STOPPED);
    cr_assert_eq(v.state, JOB_FAILED);
    cr_assert_not_null(strstr(v.reason, "without reporting"), "%s", v.reason);
    /* the line was torn by a full disk or a crash */
    v = judge_failure(RUN_START
                      "{\"seq\": 9, \"t\": 9, \"type\": \"run_stop\", \"status\": \"success\"",
                      "", 0, -1, FAILURE_NOT_STOPPED);
    cr_assert_eq(v.state, JOB_FAILED);
}

Test(failure, names_rank_host_signal_and_last_lines)
{
    struct verdict v = judge_failure(RUN_START, killed, 137, -1, FAILURE_NOT_STOPPED);
    cr_assert_eq(v.state, JOB_FAILED);
    cr_assert_not_null(strstr(v.reason, "rank 1 on vm was ended by signal 9 (SIGKILL, Killed)"),
                       "%s", v.reason);
    cr_assert_not_null(
        strstr(v.reason, "last lines of the log: 2026-11-21T13:47:02.000Z info: rank 1: epoch 1"),
        "%s", v.reason);
    cr_assert_null(strchr(v.reason, '\n'));
    v = judge_failure(RUN_START, non_zero, 4, -1, FAILURE_NOT_STOPPED);
    cr_assert_str_eq(v.reason, "rank 1 ended with exit code 4 in phase data; "
                               "last lines of the log: error: bad thing");
    cr_assert_eq(failure_cause_length(v.reason),
                 strlen("rank 1 ended with exit code 4 in phase data"));
    cr_assert_eq(failure_cause_length("stalled"), strlen("stalled"));
}

/* As common/assert_always.h writes it, and Open MPI after it. */
Test(failure, a_failed_assertion_of_a_worker_is_named)
{
    static const char aborted[] =
        "2026-11-28T18:20:01.000Z error: rank 1: internal error at worker/model/model_step.c:123, "
        "model_backward: m->magic == MODEL_MAGIC is false (train-worker 0.1.0, errno 11); this is "
        "a bug: please report this line. Nothing that was stored is lost: start train-worker "
        "again\n"
        "[vm:00571] *** Process received signal ***\n"
        "[vm:00571] Signal: Aborted (6)\n"
        "[vm:00571] *** End of error message ***\n" ABORTED RULE
        "mpirun noticed that process rank 1 with PID 571 on node vm exited on signal 6 "
        "(Aborted).\n" RULE;
    struct verdict v = judge_failure(RUN_START, aborted, 134, -1, FAILURE_NOT_STOPPED);

    cr_assert_not_null(strstr(v.reason, "rank 1 on vm was ended by signal 6 (SIGABRT, Aborted)"),
                       "%s", v.reason);
    cr_assert_not_null(strstr(v.reason, "rank 1: internal error at worker/model/model_step.c:123, "
                                        "model_backward: m->magic == MODEL_MAGIC is false ("),
                       "%s", v.reason);
}

Test(failure, lines_for_the_store_keep_their_indentation)
{
    struct verdict v =
        judge_failure(RUN_START, "x\n  step   loss\n     3   2.10\n\n    12   1.98\n", 4, -1,
                      FAILURE_NOT_STOPPED);
    cr_assert_str_eq(v.lines, "step   loss\n   3   2.10\n  12   1.98");
    cr_assert_not_null(strstr(v.reason, "last lines of the log: step   loss; 3   2.10; 12   1.98"),
                       "%s", v.reason);
}

Test(failure, a_full_disk_is_known_from_the_exit_code)
{
    struct verdict v = judge_failure(NULL, ABORTED, 8, -1, FAILURE_NOT_STOPPED);
    cr_assert_not_null(strstr(v.reason, "exit code 8: No space left on device"), "%s", v.reason);
}

Test(failure, no_memory_for_a_library_of_mpi_is_named)
{
    struct verdict v = judge_failure(
        NULL,
        "[vm:19604] mca_base_component_repository_open: unable to open mca_pml_ob1: "
        "/usr/lib/mca_pml_ob1.so: failed to map segment from shared object (ignored)\n",
        139, -1, FAILURE_NOT_STOPPED);
    cr_assert_str_eq(v.reason, "a worker was ended by signal 11 (SIGSEGV, Segmentation fault): "
                               "Cannot allocate memory for a shared library");
}

Test(failure, names_the_last_step)
{
    struct verdict v =
        judge_failure(RUN_START "{\"seq\": 2, \"t\": 1, \"type\": \"step\", \"step\": 41}\n",
                      non_zero, 4, -1, FAILURE_NOT_STOPPED);
    cr_assert_str_eq(v.reason,
                     "rank 1 ended with exit code 4 in phase train; the last step was 41; "
                     "last lines of the log: error: bad thing");
}

Test(failure, a_signal_is_known_from_the_exit_code_too)
{
    struct verdict v = judge_failure(RUN_START, "step 1\n", 139, -1, FAILURE_NOT_STOPPED);
    cr_assert_str_eq(v.reason, "a worker was ended by signal 11 (SIGSEGV, Segmentation fault) in "
                               "phase data; "
                               "last lines of the log: step 1");
}

Test(failure, the_workers_message_comes_before_mpiruns)
{
    struct verdict v = judge_failure(RUN_START FAILED, non_zero, 1, -1, FAILURE_NOT_STOPPED);
    cr_assert_eq(v.state, JOB_FAILED);
    cr_assert_str_eq(v.reason, "shard-2 is damaged at byte 40 (rank 3 on n4, phase data)");
}

Test(failure, uses_mpiruns_message_if_no_worker_ran)
{
    struct verdict v =
        judge_failure(NULL, RULE "There are not enough slots available\nin the system\n" RULE, 1,
                      -1, FAILURE_NOT_STOPPED);
    cr_assert_str_eq(v.reason, "mpirun ended with exit code 1; mpirun: There are not enough "
                               "slots available in the system");
    cr_assert_eq(failure_cause_length(v.reason), strlen("mpirun ended with exit code 1"));
    v = judge_failure(NULL, not_launched, 132, -1, FAILURE_NOT_STOPPED);
    cr_assert_not_null(strstr(v.reason, "failed to start"), "%s", v.reason);
}

Test(failure, an_attempt_that_was_to_be_cancelled_is_cancelled)
{
    cr_assert_eq(judge_failure(RUN_START STOPPED, "", 130, -1, FAILURE_CANCELLED).state,
                 JOB_CANCELLED);
    cr_assert_eq(judge_failure(RUN_START, killed, 137, -1, FAILURE_CANCELLED).state, JOB_CANCELLED);
    cr_assert_eq(judge_failure(NULL, NULL, -1, 9, FAILURE_CANCELLED).state, JOB_CANCELLED);
    cr_assert_str_eq(judge_failure(RUN_START "{\"type\": \"run_stop\", \"status\": "
                                             "\"cancelled\", \"step\": 0}\n",
                                   "", 130, -1, FAILURE_CANCELLED)
                         .reason,
                     "cancelled on request");
    /* it was faster than the request */
    cr_assert_eq(judge_failure(RUN_START SUCCESS, "", 0, -1, FAILURE_CANCELLED).state,
                 JOB_SUCCEEDED);
    /* somebody else's signal */
    struct verdict v = judge_failure(RUN_START STOPPED, "", 130, -1, FAILURE_NOT_STOPPED);
    cr_assert_eq(v.state, JOB_CANCELLED);
    cr_assert_not_null(strstr(v.reason, "traind did not send"), "%s", v.reason);
}

Test(failure, an_attempt_that_never_ran_is_queued_again)
{
    cr_assert_eq(judge_failure(NULL, NULL, -1, -1, FAILURE_NOT_STOPPED).state, JOB_QUEUED);
    cr_assert_eq(judge_failure(NULL, "", -1, -1, FAILURE_NOT_STOPPED).state, JOB_QUEUED);
    cr_assert_eq(judge_failure(NULL, "mpirun: no\n", -1, -1, FAILURE_NOT_STOPPED).state,
                 JOB_FAILED);
    cr_assert_eq(judge_failure(NULL, "", 1, -1, FAILURE_NOT_STOPPED).state, JOB_FAILED);
    cr_assert_eq(judge_failure(NULL, "", -1, 9, FAILURE_NOT_STOPPED).state, JOB_FAILED);
}

Test(failure, an_attempt_ended_by_its_time_limit_has_not_failed)
{
    struct verdict v = judge_failure(RUN_START STOPPED, "", 130, -1, FAILURE_TIME_LIMIT);
    cr_assert_eq(v.state, JOB_CANCELLED);
    cr_assert_str_eq(v.reason, "stopped at its time limit (cluster.time_limit) after step 4");
    v = judge_failure(RUN_START, killed, -1, 9, FAILURE_TIME_LIMIT);
    cr_assert_eq(v.state, JOB_CANCELLED);
    cr_assert_not_null(strstr(v.reason, "did not stop in time"), "%s", v.reason);
}

Test(failure, an_attempt_that_was_stopped_to_grow_goes_on)
{
    struct verdict v = judge_failure(RUN_START STOPPED, "", 130, -1, FAILURE_GROWS);
    cr_assert(v.goes_on && v.grows);
    cr_assert_str_eq(v.reason, "stopped to go on with more hosts after step 4");
    v = judge_failure(RUN_START, killed, -1, 9, FAILURE_GROWS);
    cr_assert(v.goes_on && v.grows, "its workers had to be killed");
    v = judge_failure(RUN_START FAILED, non_zero, 2, -1, FAILURE_GROWS);
    cr_assert(v.state == JOB_FAILED && !v.goes_on && !v.grows, "it failed before it stopped");
    v = judge_failure(RUN_START SUCCESS, "", 0, -1, FAILURE_GROWS);
    cr_assert(v.state == JOB_SUCCEEDED && !v.goes_on && !v.grows, "it was complete");
}

Test(failure, distinguishes_faults_of_the_job_from_outside_ones)
{
    cr_assert(judge_failure(RUN_START FAILED, non_zero, 2, -1, FAILURE_NOT_STOPPED).own_fault);
    cr_assert_not(judge_failure(RUN_START FAILED, non_zero, 1, -1, FAILURE_NOT_STOPPED).own_fault);
    cr_assert_not(judge_failure(RUN_START, killed, 137, -1, FAILURE_NOT_STOPPED).own_fault);
}

Test(failure, has_its_fields_for_the_store)
{
    struct verdict v =
        judge_failure(RUN_START "{\"seq\": 2, \"t\": 1, \"type\": \"step\", \"step\": 41}\n",
                      crashed, 139, -1, FAILURE_NOT_STOPPED);
    json_t *json = failure_to_json(&v, 2);
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    json_object_del(json, "reason");
    json_t *wanted =
        json_pack("{s:i, s:i, s:i, s:s, s:s, s:s, s:n, s:n, s:[s]}", "attempt", 2, "step", 41,
                  "rank", 17, "host", "node-12.cluster", "phase", "train", "signal", "SIGSEGV",
                  "exit_code", "label", "log", "step 3, loss 2.1");
    cr_assert(json_equal(json, wanted), "%s", text);
    free(text);
    json_decref(json);
    json_decref(wanted);
}

Test(failure, a_lost_host_is_named_though_the_others_stopped_in_order)
{
    struct verdict v = judge_failure(RUN_START STOPPED, lost, 205, -1, FAILURE_NOT_STOPPED);
    cr_assert_eq(v.state, JOB_FAILED);
    cr_assert_str_eq(v.who.host, "n2.cluster");
    cr_assert_not_null(strstr(v.reason, "host n2.cluster no longer answers"));
    v = judge_failure(RUN_START STOPPED, lost, 205, -1, FAILURE_CANCELLED);
    cr_assert_eq(v.state, JOB_CANCELLED, "on request it may");
}
