#include "daemon/settings.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert_always.h"
#include "common/xalloc.h"

/* settings_get returns the address of config. */
struct snapshot {
    struct config config;
    atomic_int references;
};

#define SETTINGS_MAGIC 0x5e771265u

struct settings {
    unsigned magic;
    pthread_mutex_t mutex;    /* guards current */
    struct snapshot *current; /* holds one reference */
};

/* Creates a snapshot with one reference. */
static struct snapshot *settings_create_snapshot(struct config *c)
{
    struct snapshot *s = xmalloc(sizeof *s);

    *s = (struct snapshot){.config = *c, .references = 1};
    memset(c, 0, sizeof *c);
    return s;
}

struct settings *settings_create(struct config *first)
{
    struct settings *s = xmalloc(sizeof *s);

    s->magic = SETTINGS_MAGIC;
    pthread_mutex_init(&s->mutex, NULL);
    s->current = settings_create_snapshot(first);
    return s;
}

void settings_destroy(struct settings *s)
{
    if (!s)
        return;
    assert_object_ends(s, SETTINGS_MAGIC);
    settings_release(&s->current->config);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

const struct config *settings_get(struct settings *s)
{
    assert_object(s, SETTINGS_MAGIC);
    pthread_mutex_lock(&s->mutex);
    struct snapshot *current = s->current;
    atomic_fetch_add_explicit(&current->references, 1, memory_order_relaxed);
    pthread_mutex_unlock(&s->mutex);
    return &current->config;
}

void settings_release(const struct config *snapshot)
{
    struct snapshot *s = (struct snapshot *)(void *)snapshot;

    if (!s)
        return;
    int before = atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel);
    assert_always(before > 0);
    if (before > 1)
        return;
    config_clear(&s->config);
    free(s);
}

void settings_replace(struct settings *s, struct config *fresh, struct config_changes *changes)
{
    const struct config *before = settings_get(s);

    config_inherit(fresh, before, changes);
    pthread_mutex_lock(&s->mutex);
    struct snapshot *last = s->current;
    s->current = settings_create_snapshot(fresh);
    pthread_mutex_unlock(&s->mutex);
    settings_release(&last->config);
    settings_release(before);
}
