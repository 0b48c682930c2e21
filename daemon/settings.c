#include "daemon/settings.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* What settings_get gives is the address of config. */
struct snapshot {
    struct config config;
    atomic_int references;
};

struct settings {
    pthread_mutex_t mutex; /* guards the pointer: who gets a reference does so before it is gone */
    struct snapshot *current; /* one reference is ours */
};

/* With one reference. */
static struct snapshot *settings_create_snapshot(struct config *c)
{
    struct snapshot *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->config = *c;
    atomic_init(&s->references, 1);
    memset(c, 0, sizeof *c);
    return s;
}

int settings_create(struct config *first, struct settings **out, struct error *e)
{
    struct settings *s = calloc(1, sizeof *s);

    *out = NULL;
    if (!s || !(s->current = settings_create_snapshot(first))) {
        free(s);
        return error_set(e, ERR_NO_MEMORY, "no memory for the settings");
    }
    pthread_mutex_init(&s->mutex, NULL);
    *out = s;
    return 0;
}

void settings_destroy(struct settings *s)
{
    if (!s)
        return;
    settings_release(&s->current->config);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

const struct config *settings_get(struct settings *s)
{
    pthread_mutex_lock(&s->mutex);
    struct snapshot *current = s->current;
    atomic_fetch_add_explicit(&current->references, 1, memory_order_relaxed);
    pthread_mutex_unlock(&s->mutex);
    return &current->config;
}

void settings_release(const struct config *snapshot)
{
    struct snapshot *s = (struct snapshot *)(void *)snapshot;

    if (!s || atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel) > 1)
        return;
    config_clear(&s->config);
    free(s);
}

int settings_replace(struct settings *s, struct config *fresh, struct config_changes *changes,
                     struct error *e)
{
    const struct config *before = settings_get(s);
    int status = config_inherit(fresh, before, changes, e);
    struct snapshot *next = status ? NULL : settings_create_snapshot(fresh);

    if (!status && !next)
        status = error_set(e, ERR_NO_MEMORY, "no memory for the settings");
    if (!status) {
        pthread_mutex_lock(&s->mutex);
        struct snapshot *last = s->current;
        s->current = next;
        pthread_mutex_unlock(&s->mutex);
        settings_release(&last->config);
    }
    settings_release(before);
    return status;
}
