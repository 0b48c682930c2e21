#include "daemon/notice/deliver.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/assert_always.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/notify/target.h"
#include "common/text.h"
#include "common/xalloc.h"
#include "daemon/notice/mail.h"
#include "daemon/notice/outbox.h"
#include "daemon/notice/post.h"

#define FIRST_RETRY_SECONDS 1.0
#define LAST_RETRY_SECONDS  3600.0
#define LEAST_ATTEMPTS      3   /* before a notice is given up, however old it is */
#define TROUBLE_SECONDS     5.0 /* pause after a database error */
#define MAIL_LOOK_MS        1000
#define TRIM_SECONDS        3600.0

struct delivery {
    struct outbox_notice notice;
    struct notice_settings *settings; /* a counted reference */
    struct post *post;
    struct mail *mail;
    bool used;
};

#define DELIVER_MAGIC 0xde11ee65u

struct deliver {
    unsigned magic;
    struct store *store;
    deliver_settings *settings;
    void *context;
    CURLM *multi;
    pthread_t thread;
    bool started;
    atomic_bool stop, look; /* look: the outbox may have new notices */
    struct delivery deliveries[DELIVER_MAX_CONCURRENT];
    double next_look; /* Unix time at which the next notice is due */
    double next_trim; /* monotonic */
    atomic_llong delivered, failed, attempts;
};

static void deliver_clear(struct deliver *d, struct delivery *f)
{
    if (f->post)
        curl_multi_remove_handle(d->multi, post_handle(f->post));
    post_destroy(f->post);
    mail_destroy(f->mail);
    notice_settings_release(f->settings);
    outbox_notice_clear(&f->notice);
    *f = (struct delivery){0};
}

/* Returns the time of the next attempt, or 0 to give up. Delays double, with jitter so that targets
 * that failed together are not retried together. */
static double deliver_retry_at(const struct delivery *f, double now, double retry_after)
{
    const struct outbox_notice *n = &f->notice;
    double delay =
        fmin(ldexp(FIRST_RETRY_SECONDS, (int)fmin((double)n->attempts, 30)), LAST_RETRY_SECONDS);
    double at = now + fmax(delay * (0.8 + 0.4 * (double)random() / (double)RAND_MAX), retry_after);

    return n->kind == NOTICE_TEST || (n->attempts + 1 >= LEAST_ATTEMPTS &&
                                      at > n->t + (double)f->settings->config.notify_retry_seconds)
               ? 0
               : at;
}

/* Stores the outcome and frees the slot. */
static void deliver_finish(struct deliver *d, struct delivery *f, struct post_outcome *o)
{
    const struct outbox_notice *n = &f->notice;
    double now = clock_now(), at = now;
    struct error e;

    if (o->state == OUTBOX_WAITING && (at = deliver_retry_at(f, now, o->retry_after)) == 0) {
        o->state = OUTBOX_FAILED;
        at = now;
    }
    atomic_fetch_add(&d->attempts, 1);
    /* Omits the target, whose URL may be a secret; trainctl notify list shows it by id. */
    if (o->state == OUTBOX_FAILED)
        log_warning("notice %lld (%s, job %lld): giving up after %lld attempt%s: %s",
                    (long long)n->id, notice_kind_name(n->kind), (long long)n->job_id,
                    (long long)n->attempts + 1, plural(n->attempts + 1), o->words);
    if (outbox_attempted(d->store, n->id, o->state, *o->words ? o->words : NULL, at, &e)) {
        log_warning("cannot store the result of notice %lld, so it will be sent again: %s",
                    (long long)n->id, e.text);
        d->next_look = now + TROUBLE_SECONDS;
    } else {
        atomic_fetch_add(o->state == OUTBOX_DELIVERED ? &d->delivered : &d->failed,
                         o->state != OUTBOX_WAITING);
        atomic_store(&d->look, true);
    }
    deliver_clear(d, f);
}

static void deliver_host(const struct outbox_notice *n, char host[NOTICE_HOST_BYTES])
{
    struct notice_target target;
    const char *why;

    snprintf(host, NOTICE_HOST_BYTES, "%s",
             notice_target_parse(n->target, &target, &why) ? target.host : "");
}

static bool deliver_may_begin(const struct deliver *d, const struct outbox_notice *n)
{
    char host[NOTICE_HOST_BYTES], other[NOTICE_HOST_BYTES];
    int of_owner = 0, of_host = 0;

    deliver_host(n, host);
    for (int i = 0; i < DELIVER_MAX_CONCURRENT; i++) {
        const struct outbox_notice *m = &d->deliveries[i].notice;
        if (!d->deliveries[i].used)
            continue;
        if (strcmp(m->target, n->target) == 0)
            return false;
        deliver_host(m, other);
        of_owner += m->by_rule == n->by_rule &&
                    (m->by_rule || strcmp(m->owner ? m->owner : "", n->owner ? n->owner : "") == 0);
        of_host += strcmp(other, host) == 0;
    }
    return of_owner < DELIVER_MAX_OF_OWNER && of_host < DELIVER_MAX_OF_HOST;
}

static void deliver_begin(struct deliver *d, struct delivery *f, struct outbox_notice *n)
{
    struct error e;

    *f = (struct delivery){.notice = *n, .settings = d->settings(d->context), .used = true};
    *n = (struct outbox_notice){0};
    bool mail = strncasecmp(f->notice.target, "mailto:", 7) == 0;
    int status = mail ? mail_create(&f->notice, f->settings, &f->mail, &e)
                      : post_create(&f->notice, f->settings, &f->post, &e);
    if (!status && f->post && curl_multi_add_handle(d->multi, post_handle(f->post)) != CURLM_OK)
        status = error_set(&e, ERR_NO_MEMORY, "out of memory for a request");
    if (!status)
        return;
    struct post_outcome outcome = {.state = e.code == ERR_INVALID ? OUTBOX_FAILED : OUTBOX_WAITING};
    snprintf(outcome.words, sizeof outcome.words, "%.*s", (int)sizeof outcome.words - 1, e.text);
    deliver_finish(d, f, &outcome);
}

static void deliver_start_due(struct deliver *d)
{
    struct outbox_notices due;
    struct error e;
    double now = clock_now();

    /* Reads more than may start, because those in progress are still due. */
    if (outbox_due(d->store, now, 2 * DELIVER_MAX_OF_OWNER, (size_t)16 * DELIVER_MAX_CONCURRENT,
                   &due, &d->next_look, &e)) {
        log_warning("cannot read the waiting notices: %s", e.text);
        d->next_look = now + TROUBLE_SECONDS;
        return;
    }
    struct delivery *f = d->deliveries, *end = f + DELIVER_MAX_CONCURRENT;
    for (size_t i = 0; i < due.count; i++) {
        for (f = d->deliveries; f < end && f->used;)
            f++;
        if (f < end && deliver_may_begin(d, &due.items[i]))
            deliver_begin(d, f, &due.items[i]);
    }
    outbox_notices_clear(&due);
}

static void deliver_poll_posts(struct deliver *d)
{
    struct post_outcome outcome;
    int left;
    CURLMsg *message;

    while ((message = curl_multi_info_read(d->multi, &left))) {
        CURL *curl = message->easy_handle;
        CURLcode code = message->data.result;
        for (int i = 0; i < DELIVER_MAX_CONCURRENT; i++) {
            struct delivery *f = &d->deliveries[i];
            if (!f->post || post_handle(f->post) != curl)
                continue;
            curl_multi_remove_handle(d->multi, curl);
            if (!post_done(f->post, code, &outcome)) {
                curl_multi_add_handle(d->multi, curl);
                continue;
            }
            deliver_finish(d, f, &outcome);
        }
    }
}

static int deliver_poll_mails(struct deliver *d, struct curl_waitfd fds[DELIVER_MAX_CONCURRENT])
{
    struct post_outcome outcome;
    int count = 0;

    for (int i = 0; i < DELIVER_MAX_CONCURRENT; i++) {
        struct delivery *f = &d->deliveries[i];
        if (!f->mail)
            continue;
        if (mail_look(f->mail, &outcome)) {
            deliver_finish(d, f, &outcome);
        } else {
            fds[count++] =
                (struct curl_waitfd){.fd = mail_pidfd(f->mail), .events = CURL_WAIT_POLLIN};
        }
    }
    return count;
}

static void deliver_trim(struct deliver *d)
{
    struct notice_settings *settings = d->settings(d->context);
    double days = (double)settings->config.keep_notice_days;
    struct error e;
    int deleted;

    notice_settings_release(settings);
    d->next_trim = clock_monotonic() + TRIM_SECONDS;
    if (days > 0 && outbox_trim(d->store, clock_now() - days * 86400, &deleted, &e))
        log_warning("cannot delete old notices: %s", e.text);
    else if (days > 0 && deleted > 0)
        d->next_trim = 0; /* there may be more to delete */
}

static void *deliver_thread(void *context)
{
    struct curl_waitfd fds[DELIVER_MAX_CONCURRENT];
    struct deliver *d = context;
    int running;

    while (!atomic_load(&d->stop)) {
        if (clock_monotonic() >= d->next_trim)
            deliver_trim(d);
        if (atomic_exchange(&d->look, false) || clock_now() >= d->next_look)
            deliver_start_due(d);
        curl_multi_perform(d->multi, &running);
        deliver_poll_posts(d);
        int mails = deliver_poll_mails(d, fds);
        double wait = fmin(d->next_look - clock_now(), d->next_trim - clock_monotonic());
        int wait_ms = atomic_load(&d->look) || wait <= 0 ? 0
                      : mails                            ? (int)fmin(MAIL_LOOK_MS, wait * 1000 + 1)
                                                         : (int)(wait * 1000) + 1;
        curl_multi_poll(d->multi, fds, (unsigned)mails, wait_ms, NULL);
    }
    return NULL;
}

struct deliver *deliver_create(struct store *store, deliver_settings *settings, void *context)
{
    struct deliver *d = xcalloc(1, sizeof *d);

    curl_global_init(CURL_GLOBAL_DEFAULT);
    d->multi = must_alloc(curl_multi_init());
    d->magic = DELIVER_MAGIC;
    d->store = store;
    d->settings = settings;
    d->context = context;
    atomic_init(&d->look, true);
    return d;
}

int deliver_start(struct deliver *d, struct error *e)
{
    sigset_t all, before;

    assert_object(d, DELIVER_MAGIC);
    /* The main thread handles signals. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int why = pthread_create(&d->thread, NULL, deliver_thread, d);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    d->started = !why;
    return why ? error_set_errno(e, why, "cannot start the thread that sends notices") : 0;
}

void deliver_wake(struct deliver *d)
{
    assert_object(d, DELIVER_MAGIC);
    atomic_store(&d->look, true);
    curl_multi_wakeup(d->multi);
}

void deliver_count(const struct deliver *d, struct deliver_counts *counts)
{
    assert_object(d, DELIVER_MAGIC);
    counts->delivered = atomic_load(&d->delivered);
    counts->failed = atomic_load(&d->failed);
    counts->attempts = atomic_load(&d->attempts);
}

void deliver_destroy(struct deliver *d)
{
    if (!d)
        return;
    assert_object_ends(d, DELIVER_MAGIC);
    atomic_store(&d->stop, true);
    curl_multi_wakeup(d->multi);
    if (d->started)
        pthread_join(d->thread, NULL);
    for (int i = 0; i < DELIVER_MAX_CONCURRENT; i++) {
        struct delivery *f = &d->deliveries[i];
#if LIBCURL_VERSION_NUM >= 0x075700
        if (f->post) /* do not wait for the name service */
            curl_easy_setopt(post_handle(f->post), CURLOPT_QUICK_EXIT, 1L);
#endif
        if (f->used)
            deliver_clear(d, f);
    }
    curl_multi_cleanup(d->multi);
    free(d);
}
