/*
 * A real MPI program with train-worker's command line, for tests of the launcher: it writes genuine
 * events through worker/report.c but trains nothing, so that a test chooses how a run goes. The
 * job's name says it, as words "key=value": steps, step_ms, eval (events), rank and at (who and at
 * which step) with one of signal (raise it), exit (code), abort (MPI_Abort code), fail (1: a failed
 * event and exit 1), forge (1: words as mpirun's, on a node called elsewhere), or junk (1: bad
 * lines in events.jsonl); joules (of each step; unread: of so many more machines
 * nothing is known); deaf (1: SIGUSR1 and SIGTERM are ignored); every (a checkpoint every so
 * many steps, a folder with its state.json, from which
 * --resume latest goes on); gate (this step waits for a file "go" in the attempt's folder); first
 * (1: what goes wrong does so in the first attempt alone); children (1: each rank starts one that
 * ignores signals and has one of its own, without their environment).
 */
#include <fcntl.h>
#include <jansson.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/json.h"
#include "common/run/checkpoints.h"
#include "common/run/attempt.h"
#include "common/system/file.h"
#include "worker/report.h"

static volatile sig_atomic_t stop;
static char name[1024], attempt_dir[4096], checkpoints[4200];
static int attempt;
static struct report *events;

static void fixture_request_stop(int number)
{
    (void)number;
    stop = 1;
}

static long word(const char *key, long otherwise)
{
    char pattern[32];
    snprintf(pattern, sizeof pattern, " %s=", key);
    const char *at = strstr(name, pattern);
    return at ? strtol(at + strlen(pattern), NULL, 10) : otherwise;
}

static void finish_event(void)
{
    struct error e;
    if (report_end(events, &e)) {
        fprintf(stderr, "fixture: %s\n", e.text);
        exit(1);
    }
}

static void write_junk(void)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/events.jsonl", attempt_dir);
    int fd = open(path, O_WRONLY | O_APPEND);
    static const char junk[] =
        "this is not JSON\n[1]\n{\"seq\": 1, \"t\": 1, \"type\": \"step\"}\n\n";
    if (fd < 0 || write(fd, junk, sizeof junk - 1) < 0)
        exit(1);
    close(fd);
}

static void go_wrong(int rank)
{
    if (word("forge", 0))
        fputs("mpirun noticed that process rank 0 with PID 1 on node elsewhere exited on signal 4 "
              "(Illegal instruction).\n",
              stderr);
    if (word("signal", 0)) {
        struct sigaction standard = {.sa_handler = SIG_DFL};
        sigaction((int)word("signal", 0), &standard, NULL);
        raise((int)word("signal", 0));
    }
    if (word("fail", 0)) {
        report_begin(events, EVENT_FAILED);
        report_int(events, "rank", rank);
        report_text(events, "host", "testhost");
        report_text(events, "phase", "data");
        report_text(events, "reason", "shard train-00003-of-00008 is damaged at byte 4711");
        finish_event();
        exit(1);
    }
    if (word("abort", 0))
        MPI_Abort(MPI_COMM_WORLD, (int)word("abort", 0));
    if (word("exit", 0))
        exit((int)word("exit", 0));
    if (word("junk", 0) && rank == 0)
        write_junk();
}

static void write_checkpoint(long step)
{
    char path[4300];
    struct error e;
    json_t *state = json_pack("{s:i, s:i, s:i}", "step", (int)step, "epoch_number", 0,
                              "epoch_images", (int)step * 4);

    snprintf(path, sizeof path, "%s/step-%08ld", checkpoints, step);
    if (file_make_dirs(path, &e))
        exit(1);
    snprintf(path, sizeof path, "%s/step-%08ld/state.json", checkpoints, step);
    if (json_file_write(path, state, &e))
        exit(1);
    json_decref(state);
    report_begin(events, EVENT_CHECKPOINT);
    report_int(events, "step", step);
    finish_event();
}

static long newest_checkpoint(void)
{
    struct dirent **names;
    int64_t step = 0;
    struct error e;
    int count = checkpoint_list(checkpoints, &names, &e);

    if (count > 0)
        checkpoint_step(names[0]->d_name, &step);
    checkpoint_list_free(names, count);
    return (long)step;
}

static void have_children(void)
{
    if (fork())
        return;
    signal(SIGTERM, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    fork();
    setsid();
    char *const argv[] = {"sleep", "1000", NULL};
    char *const environment[] = {NULL};
    execve("/bin/sleep", argv, environment);
    _exit(1);
}

static void fixture_say_step(long step)
{
    report_begin(events, EVENT_STEP);
    report_int(events, "step", step);
    report_real(events, "epoch", (double)step / 100);
    report_real(events, "loss", 2.0 / (double)step);
    report_real(events, "lr", 0.1);
    report_real(events, "images_per_sec", 100);
    report_real(events, "top1", 1 - 0.5 / (double)step);
    finish_event();
}

static void fixture_say_eval(long step)
{
    for (int part = 1; part <= 2; part++) {
        report_begin(events, EVENT_EVAL_PROGRESS);
        report_int(events, "step", step);
        report_int(events, "done", part);
        finish_event();
    }
    report_begin(events, EVENT_EVAL);
    report_int(events, "step", step);
    report_real(events, "epoch", (double)word("epoch", 1));
    report_real(events, "top1", 0.75);
    report_real(events, "top5", 0.9375);
    report_real(events, "loss", 0.5);
    report_int(events, "images", 64);
    finish_event();
}

static void say_energy(long step, double joules)
{
    report_begin(events, EVENT_ENERGY);
    report_int(events, "step", step);
    report_real(events, "joules", joules);
    report_int(events, "hosts", 1 + word("unread", 0));
    report_int(events, "hosts_measured", 1);
    finish_event();
}

static void nap(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    if (ms > 0)
        nanosleep(&t, NULL);
}

static void wait_for_go(void)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/go", attempt_dir);
    while (access(path, F_OK) && !stop)
        nap(20);
}

/* Whether any rank says so. Whoever waits sleeps: a rank may hang for minutes, and others need the
 * processor. */
static int any_rank(int mine)
{
    MPI_Request request;
    int any, ended = 0;

    MPI_Iallreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
    for (int tries = 0; MPI_Test(&request, &ended, MPI_STATUS_IGNORE), !ended; tries++)
        nap(tries > 100);
    return any;
}

/* Returns the steps done; *stopped as all ranks agreed. */
static long run_steps(int rank, long from, int *stopped)
{
    long steps = word("steps", 4), step, every = word("every", 0);
    bool wrong = attempt == 1 || !word("first", 0);

    *stopped = 0;
    for (step = from + 1; step <= steps && !*stopped; step++) {
        nap(word("step_ms", 0));
        if (step == word("gate", -1))
            wait_for_go();
        if (rank == 0)
            fixture_say_step(step);
        if (rank == 0 && word("joules", 0))
            say_energy(step, (double)(word("joules", 0) * (step - from)));
        if (wrong && step == word("at", -1))
            any_rank(0); /* rank 0 has written the step before another ends the run */
        if (wrong && step == word("at", -1) && rank == word("rank", -1))
            go_wrong(rank);
        *stopped = any_rank(stop && !word("deaf", 0));
        if (rank == 0 && every && (step % every == 0 || *stopped))
            write_checkpoint(step);
    }
    return step - 1;
}

static void fixture_read_job(const char *path)
{
    struct error e;
    json_t *job = json_document_load(path, &e);
    if (!job) {
        fprintf(stderr, "fixture: %s\n", e.text);
        exit(2);
    }
    snprintf(name, sizeof name, " %s", json_string_value(json_object_get(job, "name")));
    json_decref(job);
}

static void open_events(int rank, const char *run_dir, const char *number)
{
    char path[4200];
    struct error e;
    snprintf(attempt_dir, sizeof attempt_dir, "%s/attempt-%s", run_dir, number);
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", run_dir);
    attempt = (int)strtol(number, NULL, 10);
    if (attempt_flag_is_set(attempt_dir, ATTEMPT_FLAG_CANCEL)) /* as worker/start/start.c */
        stop = 1;
    snprintf(path, sizeof path, "%s/events.jsonl", attempt_dir);
    if (report_create(rank == 0 ? path : NULL, &events, &e)) {
        fprintf(stderr, "fixture: %s\n", e.text);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = fixture_request_stop, .sa_flags = SA_RESTART};
    int rank, stopped;

    if (argc == 3 && strcmp(argv[1], "--placement") == 0) /* of Slurm's script */
        return puts("--map-by slot:OVERSUBSCRIBE --bind-to none") < 0;
    if (argc != 9 && argc != 11) /* --stall-seconds N and --resume latest come last */
        return 2;
    fixture_read_job(argv[2]);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    open_events(rank, argv[4], argv[6]);
    fprintf(stderr, "rank %d is process %d with OMP_NUM_THREADS=%s\n", rank, (int)getpid(),
            getenv("OMP_NUM_THREADS") ? getenv("OMP_NUM_THREADS") : "");
    if (rank == 0) {
        report_begin(events, EVENT_RUN_START);
        finish_event();
    }
    if (word("children", 0))
        have_children();
    long step = run_steps(rank, argc == 11 ? newest_checkpoint() : 0, &stopped);
    if (rank == 0) {
        if (word("eval", 0) && !stopped)
            fixture_say_eval(step);
        report_begin(events, EVENT_RUN_STOP);
        report_text(events, "status", stopped ? "cancelled" : "success");
        report_int(events, "step", step);
        report_real(events, "ttt_seconds", 1.5);
        report_real(events, "images_per_sec", 123.25);
        finish_event();
    }
    report_destroy(events);
    MPI_Finalize();
    return stopped ? 130 : 0;
}
