/* Snapshots of settings: whole, unchanged while they are held, and replaced any number of times. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "daemon/settings.h"

#define READERS 4
#define RELOADS 2000

static struct error e;

/* All that may change says n. */
static struct config numbered(int n)
{
    struct config c = {0};
    char text[32];

    snprintf(text, sizeof text, "%d", n);
    cr_assert_eq(config_set(&c, "stall_seconds", text, "test", &e), 0);
    cr_assert_eq(config_set(&c, "keep_runs", text, "test", &e), 0);
    cr_assert_eq(config_set(&c, "data_roots", text, "test", &e), 0);
    return c;
}

static struct settings *create_settings(int n)
{
    struct config c = numbered(n);

    return settings_create(&c);
}

static void replace(struct settings *s, int n)
{
    struct config c = numbered(n);
    struct config_changes changes;

    settings_replace(s, &c, &changes);
    config_changes_clear(&changes);
    cr_assert_null(c.data_roots, "it was taken over");
}

Test(settings, a_snapshot_stays_as_it_was)
{
    struct settings *s = create_settings(1);
    const struct config *before = settings_get(s);

    for (int n = 2; n < 100; n++)
        replace(s, n);
    cr_assert_eq(before->jobs.limits.stall_seconds, 1);
    cr_assert_str_eq(before->data_roots, "1");
    const struct config *now = settings_get(s);
    cr_assert_str_eq(now->data_roots, "99");
    settings_destroy(s);
    cr_assert_str_eq(now->data_roots, "99", "it lives on while it is held");
    settings_release(now);
    settings_release(before);
    settings_release(NULL);
}

Test(settings, settings_that_need_a_restart_are_kept_and_named)
{
    struct settings *s = create_settings(1);
    struct config c = numbered(1), same = numbered(1);
    struct config_changes changes;

    cr_assert_eq(config_set(&c, "http_threads", "9", "test", &e), 0);
    cr_assert_eq(config_set(&c, "web_dir", "/web", "test", &e), 0);
    cr_assert_eq(config_set(&c, "keep_runs", "7", "test", &e), 0);
    cr_assert_eq(config_set(&c, "log_format", "json", "test", &e), 0);
    cr_assert_eq(config_set(&c, "node_drain_command", "/bin/drain", "test", &e), 0);
    settings_replace(s, &c, &changes);
    cr_assert_str_eq(changes.needs_restart, "http_threads, web_dir");
    cr_assert_str_eq(changes.taken, "keep_runs = 7 (was 1), log_format = json (was text), "
                                    "node_drain_command = /bin/drain (was not set)");
    const struct config *now = settings_get(s);
    cr_assert_eq(now->http_threads, 0);
    cr_assert_null(now->web_dir);
    cr_assert_eq(now->jobs.limits.keep_runs, 7);
    settings_release(now);
    config_changes_clear(&changes);

    cr_assert_eq(config_set(&same, "keep_runs", "7", "test", &e), 0);
    cr_assert_eq(config_set(&same, "log_format", "json", "test", &e), 0);
    cr_assert_eq(config_set(&same, "node_drain_command", "/bin/drain", "test", &e), 0);
    settings_replace(s, &same, &changes);
    cr_assert_str_eq(changes.taken, "");
    cr_assert_str_eq(changes.needs_restart, "");
    config_changes_clear(&changes);
    settings_destroy(s);
}

static atomic_bool done;
static atomic_int torn;

static void *read_on(void *context)
{
    struct settings *s = context;

    while (!done) {
        const struct config *c = settings_get(s);
        char text[32];
        snprintf(text, sizeof text, "%lld", (long long)c->jobs.limits.stall_seconds);
        torn += c->jobs.limits.keep_runs != c->jobs.limits.stall_seconds ||
                strcmp(c->data_roots, text) != 0;
        settings_release(c);
    }
    return NULL;
}

Test(settings, readers_see_whole_snapshots_while_they_are_replaced)
{
    struct settings *s = create_settings(0);
    pthread_t readers[READERS];

    for (int i = 0; i < READERS; i++)
        cr_assert_eq(pthread_create(&readers[i], NULL, read_on, s), 0);
    for (int n = 1; n <= RELOADS; n++)
        replace(s, n);
    done = true;
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    cr_assert_eq(torn, 0);
    settings_destroy(s);
}
