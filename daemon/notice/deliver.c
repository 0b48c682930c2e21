#include "daemon/notice/deliver.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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
#define LEAST_ATTEMPTS      3   /* before one is given up, however old it is */
#define TROUBLE_SECONDS     5.0 /* until the next look after an error of the database */
#define MAIL_LOOK_MS        1000
#define TRIM_SECONDS        3600.0

struct delivery {
    struct outbox_notice notice;
    struct notice_settings *settings; /* a reference */
    struct post *post;
    struct mail *mail;
    bool used;
};

struct deliver {
    struct store *store;
    deliver_settings *settings;
    void *context;
    CURLM *multi;
    pthread_t thread;
    bool started;
    atomic_bool stop, look; /* look: the outbox may have something new */
    struct delivery deliveries[DELIVER_MAX_CONCURRENT];
    double next_look; /* Unix time: when the next notice is due */
    double next_trim; /* monotonic */
    atomic_llong delivered, failed, attempts;
};

/* Doubles with each attempt, with jitter, so that targets that failed together do not retry
 * together. */
static double deliver_delay(int64_t attempts, double retry_after)
{
    double delay =
        fmin(ldexp(FIRST_RETRY_SECONDS, (int)fmin((double)attempts, 30)), LAST_RETRY_SECONDS);

    return fmax(delay * (0.8 + 0.4 * (double)random() / (double)RAND_MAX), retry_after);
}

static bool deliver_is_final(const struct delivery *f, double next)
{
    const struct outbox_notice *n = &f->notice;

    return n->kind == NOTICE_TEST ||
           (n->attempts + 1 >= LEAST_ATTEMPTS &&
            next > n->t + (double)f->settings->config.notify_retry_seconds);
}

/* Without the target, whose URL may be a secret; trainctl notify list shows it by the id. */
static void deliver_log_failed(const struct delivery *f, const char *words)
{
    log_warning("notice %lld (%s, job %lld) is given up after %lld attempt%s: %s",
                (long long)f->notice.id, notice_kind_name(f->notice.kind),
                (long long)f->notice.job_id, (long long)f->notice.attempts + 1,
                plural(f->notice.attempts + 1), words);
}

static void deliver_finish(struct deliver *d, struct delivery *f,
                           const struct post_outcome *outcome)
{
    struct post_outcome o = *outcome;
    double now = clock_now(), at = now;
    struct error e;

    if (o.state == OUTBOX_WAITING) {
        at = now + deliver_delay(f->notice.attempts, o.retry_after);
        if (deliver_is_final(f, at)) {
            o.state = OUTBOX_FAILED;
            at = now;
        }
    }
    atomic_fetch_add(&d->attempts, 1);
    if (o.state == OUTBOX_FAILED)
        deliver_log_failed(f, o.words);
    if (outbox_attempted(d->store, f->notice.id, o.state, *o.words ? o.words : NULL, at, &e)) {
        log_warning("cannot store the result of notice %lld, so it will be sent again: %s",
                    (long long)f->notice.id, e.text);
        d->next_look = now + TROUBLE_SECONDS;
    } else {
        atomic_fetch_add(o.state == OUTBOX_DELIVERED ? &d->delivered : &d->failed,
                         o.state != OUTBOX_WAITING);
        atomic_store(&d->look, true);
    }
}

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

static void deliver_host(const struct outbox_notice *n, char host[NOTICE_HOST_BYTES])
{
    struct notice_target target;
    const char *why;

    snprintf(host, NOTICE_HOST_BYTES, "%s",
             notice_target_parse(n->target, &target, &why) ? target.host : "");
}

static bool deliver_same_owner(const struct outbox_notice *a, const struct outbox_notice *b)
{
    return a->by_rule == b->by_rule &&
           (a->by_rule || strcmp(a->owner ? a->owner : "", b->owner ? b->owner : "") == 0);
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
        of_owner += deliver_same_owner(m, n);
        of_host += strcmp(other, host) == 0;
    }
    return of_owner < DELIVER_MAX_OF_OWNER && of_host < DELIVER_MAX_OF_HOST;
}

static struct delivery *deliver_free_slot(struct deliver *d)
{
    for (int i = 0; i < DELIVER_MAX_CONCURRENT; i++)
        if (!d->deliveries[i].used)
            return &d->deliveries[i];
    return NULL;
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
        status = error_set(&e, ERR_NO_MEMORY, "no memory for a request");
    if (!status)
        return;
    struct post_outcome outcome = {.state = e.code == ERR_INVALID ? OUTBOX_FAILED : OUTBOX_WAITING};
    snprintf(outcome.words, sizeof outcome.words, "%.*s", (int)sizeof outcome.words - 1, e.text);
    deliver_finish(d, f, &outcome);
    deliver_clear(d, f);
}

static void deliver_start_due(struct deliver *d)
{
    struct outbox_notices due;
    struct delivery *f;
    struct error e;
    double now = clock_now();

    /* More than may start, as those in progress are still due. */
    if (outbox_due(d->store, now, 2 * DELIVER_MAX_OF_OWNER, (size_t)16 * DELIVER_MAX_CONCURRENT,
                   &due, &d->next_look, &e)) {
        log_warning("the notices that wait cannot be read: %s", e.text);
        d->next_look = now + TROUBLE_SECONDS;
        return;
    }
    for (size_t i = 0; i < due.count && (f = deliver_free_slot(d)); i++)
        if (deliver_may_begin(d, &due.items[i]))
            deliver_begin(d, f, &due.items[i]);
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
            deliver_clear(d, f);
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
            deliver_clear(d, f);
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
        log_warning("old notices were not deleted: %s", e.text);
    else if (days > 0 && deleted > 0)
        d->next_trim = 0; /* there may be more */
}

static int deliver_wait_ms(const struct deliver *d, int mails)
{
    double wait = fmin(d->next_look - clock_now(), d->next_trim - clock_monotonic());

    if (atomic_load(&d->look) || wait <= 0)
        return 0;
    return mails ? (int)fmin(MAIL_LOOK_MS, wait * 1000 + 1) : (int)(wait * 1000) + 1;
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
        curl_multi_poll(d->multi, fds, (unsigned)mails, deliver_wait_ms(d, mails), NULL);
    }
    return NULL;
}

struct deliver *deliver_create(struct store *store, deliver_settings *settings, void *context)
{
    struct deliver *d = xcalloc(1, sizeof *d);

    curl_global_init(CURL_GLOBAL_DEFAULT);
    d->multi = must_alloc(curl_multi_init());
    d->store = store;
    d->settings = settings;
    d->context = context;
    atomic_init(&d->look, true);
    return d;
}

int deliver_start(struct deliver *d, struct error *e)
{
    sigset_t all, before;

    /* Signals are handled by the main thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int why = pthread_create(&d->thread, NULL, deliver_thread, d);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    d->started = !why;
    return why ? error_set_errno(e, why, "cannot start the thread of the notices") : 0;
}

void deliver_wake(struct deliver *d)
{
    atomic_store(&d->look, true);
    curl_multi_wakeup(d->multi);
}

void deliver_count(const struct deliver *d, struct deliver_counts *counts)
{
    counts->delivered = atomic_load(&d->delivered);
    counts->failed = atomic_load(&d->failed);
    counts->attempts = atomic_load(&d->attempts);
}

void deliver_destroy(struct deliver *d)
{
    if (!d)
        return;
    atomic_store(&d->stop, true);
    curl_multi_wakeup(d->multi);
    if (d->started)
        pthread_join(d->thread, NULL);
    for (int i = 0; i < DELIVER_MAX_CONCURRENT; i++) {
        struct delivery *f = &d->deliveries[i];
#if LIBCURL_VERSION_NUM >= 0x075700
        if (f->post) /* does not wait for the name service */
            curl_easy_setopt(post_handle(f->post), CURLOPT_QUICK_EXIT, 1L);
#endif
        if (f->used)
            deliver_clear(d, f);
    }
    curl_multi_cleanup(d->multi);
    free(d);
}
