/* Submissions that share a commit: none takes harm from another, and what was answered is there. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/store/job_insert.h"
#include "daemon/store/job_row.h"
#include "daemon/store/sql.h"
#include "daemon/store/store.h"
#include "tests/unit/daemon/store.h"

#define CLIENTS 8

static int commits, refuse_commit;

TestSuite(group_commit, .init = make_folder, .fini = remove_store);

static void open_group_store(void)
{
    cr_assert_eq(store_open(in_folder("traind.db"), &store, &e), 0, "%s", e.text);
}

struct client {
    pthread_t thread;
    struct store_job_new job;
    int64_t id;
    bool existed;
    int status;
    struct error e;
};

static void client_init(struct client *c)
{
    *c = (struct client){
        .job = {.name = "a",
                .spec = "{}",
                .plan = "{}",
                .size = {.slots = 1, .train_steps = 1},
                .reason = "waits",
                .now = 1000.5}
    };
}

static void *submit_in_group(void *context)
{
    struct client *c = context;
    c->status = store_job_insert(store, &c->job, &c->id, &c->existed, &c->e);
    return NULL;
}

static int count_commit(void *context)
{
    (void)context;
    commits++;
    return refuse_commit;
}

static bool thread_sleeps(const char *id)
{
    char stat[64], text[512] = "";
    FILE *in;

    snprintf(stat, sizeof stat, "/proc/self/task/%.20s/stat", id);
    if ((in = fopen(stat, "r"))) {
        text[fread(text, 1, sizeof text - 1, in)] = '\0';
        fclose(in);
    }
    const char *state = strrchr(text, ')');
    return state && state[2] == 'S';
}

/* All threads but this one, among them the clients: they wait for something. */
static bool clients_sleep(void)
{
    DIR *tasks = opendir("/proc/self/task");
    char self[16];
    int there = 0, sleeping = 0;

    snprintf(self, sizeof self, "%d", (int)gettid());
    for (struct dirent *d; (d = readdir(tasks));)
        if (d->d_name[0] != '.' && strcmp(d->d_name, self) != 0) {
            there++;
            sleeping += thread_sleeps(d->d_name);
        }
    closedir(tasks);
    return there >= CLIENTS && sleeping == there;
}

/* The writer is taken while they come, so all but the first share one group, or all do. */
static void submit_at_once(struct client *clients)
{
    struct sql *writer = sql_write_begin(store, false, &e);

    cr_assert_not_null(writer);
    sqlite3_commit_hook(sql_db(writer), count_commit, NULL);
    for (int i = 0; i < CLIENTS; i++)
        cr_assert_eq(pthread_create(&clients[i].thread, NULL, submit_in_group, &clients[i]), 0);
    while (!clients_sleep())
        usleep(1000);
    cr_assert_eq(sql_write_end(store, writer, -1, &e), -1);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(clients[i].thread, NULL);
}

static int64_t jobs_there(void)
{
    int64_t count;
    cr_assert_eq(store_job_count(store, 1u << JOB_QUEUED, &count, &e), 0, "%s", e.text);
    return count;
}

Test(group_commit, concurrent_writes_share_a_commit)
{
    struct client clients[CLIENTS];

    open_group_store();
    for (int i = 0; i < CLIENTS; i++)
        client_init(&clients[i]);
    submit_at_once(clients);
    for (int i = 0; i < CLIENTS; i++)
        cr_expect_eq(clients[i].status, 0, "%s", clients[i].e.text);
    cr_expect_eq(jobs_there(), CLIENTS);
    cr_expect_lt(commits, CLIENTS / 2, "%d commits", commits);
}

Test(group_commit, a_failed_write_does_not_affect_the_others)
{
    struct client clients[CLIENTS];
    struct store_job job;

    open_group_store();
    for (int i = 0; i < CLIENTS; i++)
        client_init(&clients[i]);
    clients[1].job.spec = "no JSON";
    clients[CLIENTS - 1].job.plan = "no JSON";
    submit_at_once(clients);
    for (int i = 0; i < CLIENTS; i++) {
        bool bad = i == 1 || i == CLIENTS - 1;
        cr_expect_eq(clients[i].status != 0, bad, "client %d: %s", i, clients[i].e.text);
        if (bad) {
            cr_expect_not_null(strstr(clients[i].e.text, "json_valid"), "%s", clients[i].e.text);
            continue;
        }
        cr_expect_eq(store_job_get(store, clients[i].id, &job, &e), 0, "%s", e.text);
        store_job_clear(&job);
    }
    cr_expect_eq(jobs_there(), CLIENTS - 2);
}

Test(group_commit, the_same_key_twice_in_a_group_is_one_job)
{
    struct client clients[CLIENTS];
    int existed = 0;

    open_group_store();
    for (int i = 0; i < CLIENTS; i++) {
        client_init(&clients[i]);
        clients[i].job.idempotency_key = "k";
        clients[i].job.request_digest = i == 3 ? "other" : "d";
    }
    submit_at_once(clients);
    int others = clients[3].status == 0 ? 3 : 0; /* who came first decides what the key is for */
    for (int i = 0; i < CLIENTS; i++) {
        bool fits = (i == 3) == (others == 3);
        cr_expect_eq(clients[i].status, fits ? 0 : -(int)ERR_CONFLICT, "%s", clients[i].e.text);
        existed += fits && clients[i].existed;
    }
    cr_expect_eq(jobs_there(), 1);
    cr_expect_eq(existed, others == 3 ? 0 : CLIENTS - 2);
}

Test(group_commit, a_failed_commit_is_reported_to_the_whole_group)
{
    struct client clients[CLIENTS];

    open_group_store();
    refuse_commit = 1;
    for (int i = 0; i < CLIENTS; i++)
        client_init(&clients[i]);
    submit_at_once(clients);
    for (int i = 0; i < CLIENTS; i++) {
        cr_expect_lt(clients[i].status, 0);
        cr_expect_neq(clients[i].e.text[0], '\0');
    }
    cr_expect_eq(jobs_there(), 0);
}

static void die_in_group(void *context)
{
    (void)context;
    kill(getpid(), SIGKILL);
}

/* The store tells of a commit before those who wait for it are answered. */
Test(group_commit, a_crash_between_commit_and_answer_loses_and_doubles_nothing)
{
    struct client clients[CLIENTS];
    char keys[CLIENTS][16];
    int how;

    for (int i = 0; i < CLIENTS; i++) {
        client_init(&clients[i]);
        snprintf(keys[i], sizeof keys[i], "key%d", i);
        clients[i].job.idempotency_key = keys[i];
        clients[i].job.request_digest = "d";
    }
    pid_t child = fork();
    if (child == 0) {
        open_group_store();
        submit_in_group(&clients[0]);
        store_on_commit(store, die_in_group, NULL);
        for (int i = 1; i < CLIENTS; i++)
            pthread_create(&clients[i].thread, NULL, submit_in_group, &clients[i]);
        pause();
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &how, 0), child);
    cr_assert(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    open_group_store();
    int64_t before = jobs_there();
    cr_expect_geq(before, 2, "the one that was answered, and those of the commit");
    int existed = 0;
    for (int i = 0; i < CLIENTS; i++) {
        submit_in_group(&clients[i]);
        cr_expect_eq(clients[i].status, 0, "%s", clients[i].e.text);
        existed += clients[i].existed;
    }
    cr_expect_eq(existed, before);
    cr_expect(clients[0].existed);
    cr_expect_eq(jobs_there(), CLIENTS);
}
