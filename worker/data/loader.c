/* A ring of depth + 1 slots: the caller holds one, the others are filled ahead. A thread takes a
 * few images at a time of the oldest unfinished batch, so that an additional thread also shortens
 * the wait for the next batch. Results do not depend on timing. */
#include "worker/data/loader.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert_always.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/number.h"
#include "common/rng.h"
#include "common/run/stall_report.h"
#include "common/run/trace.h"
#include "common/xalloc.h"
#include "worker/data/augment.h"
#include "worker/data/decode.h"
#include "worker/data/loader_config.h"
#include "worker/data/sampler.h"
#include "worker/team/parallel.h"

#define RUN              8   /* images that a thread takes at a time */
#define JUDGED_FROM      100 /* images read before the share of bad ones is checked */
#define BAD_SHARE_MAX    0.01
#define SUBSTITUTE_TRIES 32
/* A thread is added if the caller waits longer than this share of its work and this time. */
#define WAIT_SHARE   0.02
#define WAIT_SECONDS 1e-3

struct slot {
    void *images; /* float, or bf16 if configured */
    int32_t *labels;
    int64_t *indices;
    char **bad; /* (batch): error message of each bad image, else NULL */
    struct sampler_batch batch;
    int image_size;     /* of this batch */
    size_t image_bytes; /* of one image of this batch; images are contiguous */
    int taken, done;    /* number of images; guarded by the lock */
    bool ready;
    int failed_at; /* lowest image with an error that ends the run, or -1 */
    struct error failure;
};

#define LOADER_MAGIC 0x4c4f4144
struct loader {
    unsigned magic;
    struct loader_config config;
    size_t image_bytes; /* of one image of the largest size */
    float *mixed; /* synthetic images with mixup: the mixed batch, because the slots are reused
                     unchanged */
    struct slot *slots;
    int slot_count;
    pthread_t *threads;
    int thread_count;
    pthread_mutex_t lock;
    pthread_cond_t slot_free, slot_ready;
    /* Guarded by the lock. Batches are numbered from 0. */
    int64_t filling;  /* batch being filled */
    int64_t released; /* batches returned by the caller */
    int able;         /* threads that fill or will start to */
    bool stop;
    double fill_seconds; /* time the threads spent on filled_images */
    int64_t filled_images;
    int64_t next;
    double given_at; /* time of the last loader_next; 0: not called yet */
    int64_t bad;
    bool failed;
    struct error failure;
};

static void *loader_image_at(const struct slot *s, int i)
{
    return (char *)s->images + (size_t)i * s->image_bytes;
}

static size_t loader_number_bytes(const struct loader_config *c)
{
    return c->bf16 ? sizeof(bf16) : sizeof(float);
}

static void loader_fail_slot(struct loader *l, struct slot *s, int i, const struct error *e)
{
    pthread_mutex_lock(&l->lock);
    if (s->failed_at < 0 || i < s->failed_at) { /* keep the first one, whatever the timing */
        s->failed_at = i;
        s->failure = *e;
    }
    pthread_mutex_unlock(&l->lock);
}

static int64_t loader_epoch_of_image(const struct slot *s, int i)
{
    return s->batch.epoch + (i >= s->batch.next_epoch_at);
}

static void loader_fill_image(struct loader *l, struct decode_scratch *scratch, struct slot *s,
                              int i)
{
    struct error e;
    bool bad;
    double span = trace_begin();

    int rc = decode_image(scratch, &l->config, s->image_size, loader_epoch_of_image(s, i),
                          s->indices[i], loader_image_at(s, i), &s->labels[i], &bad, &e);
    trace_end(span, "decode", "decode image", 0);
    stall_progress_add(1);
    if (rc && !bad)
        loader_fail_slot(l, s, i, &e);
    else if (rc)
        s->bad[i] = xstrdup(e.text);
}

static void loader_copy_image(struct slot *s, int to, int from)
{
    memcpy(loader_image_at(s, to), loader_image_at(s, from), s->image_bytes);
    s->labels[to] = s->labels[from];
    s->indices[to] = s->indices[from];
}

/* Replaces bad image i by another one of the batch or, if all are bad, of the data set. */
static void loader_substitute(struct loader *l, struct decode_scratch *scratch, struct slot *s,
                              int i)
{
    struct error e;
    bool bad = true;
    int rc = -ERR_INVALID;

    for (int k = 1; k <= SUBSTITUTE_TRIES && rc && bad; k++) {
        int64_t index = (s->indices[i] + k) % l->config.images;
        rc = decode_image(scratch, &l->config, s->image_size, loader_epoch_of_image(s, i), index,
                          loader_image_at(s, i), &s->labels[i], &bad, &e);
        if (rc == 0)
            s->indices[i] = index;
    }
    if (rc)
        loader_fail_slot(l, s, i, &e);
}

static void loader_replace_bad(struct loader *l, struct decode_scratch *scratch, struct slot *s)
{
    int n = s->batch.n;

    for (int i = 0; i < n && s->failed_at < 0; i++) {
        if (!s->bad[i])
            continue;
        if (l->config.role == DATASET_EVAL) {
            memset(loader_image_at(s, i), 0, s->image_bytes);
            s->labels[i] = -1;
            continue;
        }
        int good = 1;
        while (good < n && s->bad[(i + good) % n])
            good++;
        if (good < n)
            loader_copy_image(s, i, (i + good) % n);
        else
            loader_substitute(l, scratch, s, i);
    }
}

static void loader_set_size(const struct loader *l, struct slot *s)
{
    s->image_size = loader_size_at(&l->config, s->batch.step);
    s->image_bytes = loader_floats_of(&l->config, s->image_size) * loader_number_bytes(&l->config);
}

static void loader_start_slot(struct loader *l, struct slot *s)
{
    s->batch = sampler_batch(&l->config, l->filling, s->indices);
    assert_always(s->batch.n <= loader_max_images(&l->config));
    loader_set_size(l, s);
    assert_always(s->image_bytes <= l->image_bytes);
    s->taken = s->done = 0;
    s->failed_at = -1;
}

/* Returns the share of an image's own label; *box is empty unless the step has CutMix. */
static double loader_lambda_of(const struct loader *l, const struct slot *s, struct cutmix_box *box)
{
    const struct loader_config *c = &l->config;

    *box = (struct cutmix_box){0};
    if (!loader_mixes(c) || c->role != DATASET_TRAIN)
        return 1;
    /* With epoch_images ranks may be in different epochs at a step, but need the same weight. */
    int64_t epoch = l->config.epoch_images ? 0 : s->batch.epoch;
    struct rng coin = rng_stream(c->seed, epoch, s->batch.step, RNG_MIXUP_OR_CUTMIX);
    if (c->mixup <= 0 || (c->cutmix > 0 && rng_below(&coin, 2)))
        return cutmix_draw(c->cutmix, c->seed, epoch, s->batch.step, s->image_size, box);
    return mixup_lambda(c->mixup, c->seed, epoch, s->batch.step);
}

static void loader_mix(const struct loader *l, const struct slot *s, float *to)
{
    struct cutmix_box box;
    double lambda = loader_lambda_of(l, s, &box);

    if (lambda < 1 && box.right > box.left)
        cutmix_images(to, s->images, s->batch.n, s->image_size, loader_channels(&l->config), &box);
    else if (lambda < 1)
        mixup_images(to, s->images, s->batch.n, loader_floats_of(&l->config, s->image_size),
                     lambda);
}

/* Waits for images [*first, *end) of a slot to fill; NULL at the end. The lock must be held. */
static struct slot *loader_take_run(struct loader *l, int *first, int *end)
{
    while (!l->stop && l->filling >= l->released + l->slot_count)
        pthread_cond_wait(&l->slot_free, &l->lock);
    if (l->stop)
        return NULL;
    assert_always(l->released <= l->filling && l->filling < l->released + l->slot_count);
    struct slot *s = &l->slots[l->filling % l->slot_count];
    if (s->taken == 0 && !s->ready)
        loader_start_slot(l, s);
    if (s->batch.n == 0) { /* end of the data; wake the next thread, so that it ends too */
        s->ready = true;
        pthread_cond_signal(&l->slot_ready);
        return NULL;
    }
    *first = s->taken;
    *end = s->taken + RUN < s->batch.n ? s->taken + RUN : s->batch.n;
    s->taken = *end;
    if (s->taken == s->batch.n) {
        l->filling++;
        l->slots[l->filling % l->slot_count].taken = 0;
    }
    return s;
}

static void loader_fill_run(struct loader *l, struct decode_scratch *scratch, struct slot *s,
                            int first, int end)
{
    double begun = clock_monotonic();

    dataset_expect(l->config.dataset, s->indices + first, end - first);
    for (int i = first; i < end; i++)
        loader_fill_image(l, scratch, s, i);
    pthread_mutex_lock(&l->lock);
    s->done += end - first;
    l->fill_seconds += clock_monotonic() - begun;
    l->filled_images += end - first;
    assert_always(s->done <= s->batch.n);
    bool last = s->done == s->batch.n;
    pthread_mutex_unlock(&l->lock);
    if (!last)
        return;
    loader_replace_bad(l, scratch, s);
    loader_mix(l, s, s->images);
    pthread_mutex_lock(&l->lock);
    s->ready = true;
    pthread_cond_signal(&l->slot_ready);
    pthread_mutex_unlock(&l->lock);
}

/* Records that `count` threads could not start. Returns the number of remaining ones; if there are
 * none, the next batch fails. */
static int loader_lose_threads(struct loader *l, int count, const struct error *e)
{
    pthread_mutex_lock(&l->lock);
    int able = l->able -= count;
    if (able == 0) {
        l->stop = true;
        l->failure = *e;
        pthread_cond_broadcast(&l->slot_free);
        pthread_cond_signal(&l->slot_ready);
    }
    pthread_mutex_unlock(&l->lock);
    return able;
}

static void *loader_prefetch(void *argument)
{
    struct loader *l = argument;
    struct decode_scratch scratch;
    struct error e;
    struct slot *s;
    int first, end;

    trace_name_thread("prefetch");
    if (decode_scratch_init(&scratch, &l->config, &e)) {
        int able = loader_lose_threads(l, 1, &e);
        if (able)
            log_warning("a prefetch thread cannot start: %s; continuing with %d", e.text, able);
        return NULL;
    }
    pthread_mutex_lock(&l->lock);
    while ((s = loader_take_run(l, &first, &end))) {
        pthread_mutex_unlock(&l->lock);
        loader_fill_run(l, &scratch, s, first, end);
        pthread_mutex_lock(&l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    decode_scratch_free(&scratch);
    return NULL;
}

static int64_t loader_step_images(const struct loader_config *c, int batch)
{
    return (int64_t)batch * (c->batches_per_step ? c->batches_per_step : 1);
}

static int loader_check_phase(const struct loader_config *c, const struct loader_phase *p,
                              struct error *e)
{
    int64_t mine = loader_step_images(c, p->batch);

    if (p->batch < 1 || p->steps_per_epoch < 1 || p->first_epoch < 0 || p->first_image < 0)
        return error_set(e, ERR_INTERNAL, "loader: invalid phase");
    if (p->steps_per_epoch > c->images / (mine * c->world))
        return error_set(e, ERR_INVALID,
                         "%" PRId64 " steps of %" PRId64 " images on each of %d ranks exceed "
                         "the %" PRId64 " images of an epoch",
                         p->steps_per_epoch, mine, c->world, c->images);
    return 0;
}

static int loader_check_epoch(const struct loader_config *c, struct error *e)
{
    int64_t batch = loader_step_images(c, loader_max_images(c)) * c->world;
    struct loader_phase always = {.batch = c->batch, .steps_per_epoch = c->steps_per_epoch};
    struct loader_phase first = loader_phase_at(c, c->first_step);
    int status = loader_check_phase(c, &always, e);

    for (int i = 0; i < c->phase_count && !status; i++)
        status = loader_check_phase(c, &c->phases[i], e);
    if (status)
        return status;
    if (c->first_epoch_shift > 0 || c->first_epoch_shift <= -batch ||
        (!c->epoch_images && c->first_epoch_shift < 0 &&
         (c->first_step - first.step) % first.steps_per_epoch == 0) ||
        (c->epoch_images && (c->epoch_images < batch || c->epoch_images > c->images)))
        return error_set(e, ERR_INTERNAL, "loader: first position outside the epoch");
    return 0;
}

static int loader_check_config(const struct loader_config *c, struct error *e)
{
    bool train = c->role == DATASET_TRAIN;

    if (c->batch < 1 || c->image_size < 1 || c->classes < 1 || c->world < 1 || c->rank < 0 ||
        c->rank >= c->world || (c->bf16 && loader_mixes(c)) || c->depth < 1 || c->threads < 0 ||
        c->images < 1 ||
        (train && (c->first_step < 0 || c->steps_per_epoch < 1 || c->batches_per_step < 0)))
        return error_set(e, ERR_INTERNAL, "loader: invalid configuration");
    if (c->dataset && c->images > dataset_images(c->dataset))
        return error_set(e, ERR_INVALID,
                         "%" PRId64 " images requested, but the data set has only %" PRId64,
                         c->images, dataset_images(c->dataset));
    return train ? loader_check_epoch(c, e) : 0;
}

static int loader_make_slots(struct loader *l, struct error *e)
{
    size_t n = (size_t)loader_max_images(&l->config);
    size_t bytes = (loader_max_floats(&l->config) * loader_number_bytes(&l->config) + 63) / 64 * 64;

    l->slots = xcalloc((size_t)l->slot_count, sizeof *l->slots);
    for (int i = 0; i < l->slot_count; i++) {
        struct slot *s = &l->slots[i];
        s->images = aligned_alloc(64, bytes);
        s->labels = xcalloc(n, sizeof *s->labels);
        s->indices = xcalloc(n, sizeof *s->indices);
        s->bad = xcalloc(n, sizeof *s->bad);
        if (!s->images)
            return error_set(e, ERR_NO_MEMORY, "no memory to prefetch %d batches of %zu bytes",
                             l->slot_count, bytes);
    }
    if (loader_mixes(&l->config) && !l->config.dataset && !(l->mixed = aligned_alloc(64, bytes)))
        return error_set(e, ERR_NO_MEMORY, "no memory for a mixed batch of %zu bytes", bytes);
    return 0;
}

static int loader_max_threads(const struct loader *l)
{
    if (l->config.threads > 0)
        return l->config.threads;
    return l->config.max_threads > 1 ? l->config.max_threads : 1;
}

static int loader_start_threads(struct loader *l, int wanted, struct error *e)
{
    if (!l->threads)
        l->threads = xcalloc((size_t)loader_max_threads(l), sizeof *l->threads);
    pthread_mutex_lock(&l->lock);
    l->able +=
        wanted - l->thread_count; /* before the threads start, as one of them may fail at once */
    pthread_mutex_unlock(&l->lock);
    for (; l->thread_count < wanted; l->thread_count++) {
        int reason =
            helper_thread_start(&l->threads[l->thread_count], "prefetch", loader_prefetch, l);
        if (!reason)
            continue;
        error_set_errno(e, reason,
                        "cannot start a prefetch thread (no memory for it, or a limit on threads)");
        loader_lose_threads(l, wanted - l->thread_count, e);
        return -(int)e->code;
    }
    return 0;
}

/* Fills a slot with images of mean 0, deviation 1; the seed, rank and slot determine them. */
static int loader_fill_synthetic(struct loader *l, int number, struct error *e)
{
    const float half_width = 1.7320508f; /* sqrt(3): a uniform distribution of deviation 1 */
    const struct loader_config *c = &l->config;
    struct slot *s = &l->slots[number];
    size_t floats = loader_image_floats(c), left = loader_max_floats(c), all = left;
    float *images = c->bf16 ? malloc(all * sizeof *images) : s->images, *to = images;

    if (!images)
        return error_set(e, ERR_NO_MEMORY, "no memory for %d synthetic images",
                         loader_max_images(c));
    for (int i = 0; i < loader_max_images(c); i++) {
        int64_t image = ((int64_t)number * c->world + c->rank) * c->batch + i;
        struct rng r = rng_stream(c->seed, c->role, image, RNG_SYNTHETIC);
        s->labels[i] = (int32_t)rng_below(&r, (uint32_t)c->classes);
        size_t n = floats < left ? floats : left; /* smaller images are contiguous too */
        for (size_t k = 0; k < n; k++)
            to[k] = half_width * (2 * 0x1p-32f * (float)rng_u32(&r) - 1);
        to += n;
        left -= n;
    }
    if (c->bf16) {
        bf16_from_floats(images, all, s->images);
        free(images);
    }
    return 0;
}

int loader_create(const struct loader_config *config, struct loader **out, struct error *e)
{
    struct loader *l;

    *out = NULL;
    int rc = loader_check_config(config, e);
    if (rc)
        return rc;
    l = xcalloc(1, sizeof *l);
    l->magic = LOADER_MAGIC;
    l->config = *config;
    l->image_bytes = loader_image_floats(config) * loader_number_bytes(config);
    l->slot_count = config->dataset ? config->depth + 1 : 2;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->slot_free, NULL);
    pthread_cond_init(&l->slot_ready, NULL);
    rc = loader_make_slots(l, e);
    for (int i = 0; i < l->slot_count && rc == 0 && !config->dataset; i++)
        rc = loader_fill_synthetic(l, i, e);
    if (rc == 0 && config->dataset)
        rc = loader_start_threads(l, config->threads > 0 ? config->threads : 1, e);
    if (rc) {
        loader_destroy(l);
        return rc;
    }
    *out = l;
    return 0;
}

static void loader_forget_bad(const struct loader *l, struct slot *s)
{
    for (int i = 0; s->bad && i < loader_max_images(&l->config); i++) {
        free(s->bad[i]);
        s->bad[i] = NULL;
    }
}

static void loader_free_slots(struct loader *l)
{
    for (int i = 0; l->slots && i < l->slot_count; i++) {
        struct slot *s = &l->slots[i];
        loader_forget_bad(l, s);
        free(s->images);
        free(s->labels);
        free(s->indices);
        free(s->bad);
    }
    free(l->slots);
}

void loader_destroy(struct loader *l)
{
    if (!l)
        return;
    assert_object_ends(l, LOADER_MAGIC);
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->slot_free);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->thread_count; i++)
        pthread_join(l->threads[i], NULL);
    free(l->threads);
    free(l->mixed);
    loader_free_slots(l);
    pthread_cond_destroy(&l->slot_free);
    pthread_cond_destroy(&l->slot_ready);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static void loader_release_last(struct loader *l)
{
    if (l->next == l->released)
        return;
    struct slot *s = &l->slots[l->released % l->slot_count];
    pthread_mutex_lock(&l->lock);
    s->ready = false;
    l->released++;
    pthread_cond_broadcast(&l->slot_free);
    pthread_mutex_unlock(&l->lock);
}

static struct slot *loader_wait_ready(struct loader *l)
{
    struct slot *s = &l->slots[l->next % l->slot_count];

    pthread_mutex_lock(&l->lock);
    while (!s->ready && !l->stop)
        pthread_cond_wait(&l->slot_ready, &l->lock);
    bool ready = s->ready;
    pthread_mutex_unlock(&l->lock);
    return ready ? s : NULL;
}

/* Counts bad images when the batch is returned, so that the count does not depend on timing. */
static void loader_count_bad(struct loader *l, struct slot *s)
{
    for (int i = 0; i < s->batch.n; i++) {
        if (!s->bad[i])
            continue;
        l->bad++;
        log_warning("cannot decode an image, %s: %s",
                    l->config.role == DATASET_EVAL ? "counting it as wrong" : "using another one",
                    s->bad[i]);
    }
    loader_forget_bad(l, s);
}

int loader_judge_bad(int64_t bad, int64_t seen, bool end, struct error *e)
{
    if ((seen < JUDGED_FROM && !end) || (double)bad <= BAD_SHARE_MAX * (double)seen)
        return 0;
    char share[NUMBER_BYTES], limit[NUMBER_BYTES];
    return error_set(e, ERR_INVALID,
                     "%" PRId64 " of the %" PRId64
                     " images read so far could not be decoded (%s %%, the limit is %s %%); "
                     "the log names each of them",
                     bad, seen, number_percent((double)bad, (double)seen, share),
                     number_percent(BAD_SHARE_MAX, 1, limit));
}

/* Returns how many threads fill a batch while the caller works on one, but at least one more than
 * now, because the disk may be slow. Superfluous threads sleep. */
static int loader_threads_wanted(struct loader *l, int images, double work_seconds)
{
    int max = loader_max_threads(l), wanted = l->thread_count + 1;

    pthread_mutex_lock(&l->lock);
    double fill = l->filled_images ? l->fill_seconds / (double)l->filled_images : 0;
    pthread_mutex_unlock(&l->lock);
    double needed = ceil(fill * images / work_seconds);
    if (needed > wanted)
        wanted = needed < max ? (int)needed : max;
    return wanted < max ? wanted : max;
}

static void loader_add_threads(struct loader *l, int images, double work_seconds,
                               double wait_seconds)
{
    int before = l->thread_count;
    struct error e;

    if (l->config.threads > 0 || before >= loader_max_threads(l) || work_seconds <= 0 ||
        wait_seconds < WAIT_SHARE * work_seconds || wait_seconds < WAIT_SECONDS)
        return;
    if (loader_start_threads(l, loader_threads_wanted(l, images, work_seconds), &e))
        log_warning("%s; continuing with %d", e.text, l->thread_count);
    else
        log_info(
            "rank %d waited %.3g s for a batch and computed for %.3g s: using %d prefetch threads "
            "instead of %d",
            l->config.rank, wait_seconds, work_seconds, l->thread_count, before);
}

static int loader_take_ready(struct loader *l, struct slot **out, struct error *e)
{
    loader_release_last(l);
    *out = loader_wait_ready(l);
    if (!*out) {
        *e = l->failure;
        return -(int)e->code;
    }
    if ((*out)->batch.n > 0 && (*out)->failed_at >= 0) {
        *e = (*out)->failure;
        return -(int)e->code;
    }
    loader_count_bad(l, *out);
    return 0;
}

static void loader_next_synthetic(struct loader *l, struct slot **out)
{
    /* The slot depends on the step, so that a resumed run uses the same synthetic images. */
    int per_step = l->config.batches_per_step ? l->config.batches_per_step : 1;
    *out = &l->slots[(l->config.first_step * per_step + l->next) % l->slot_count];
    (*out)->batch = sampler_batch(&l->config, l->next, (*out)->indices);
    loader_set_size(l, *out);
    if (l->mixed)
        loader_mix(l, *out, l->mixed);
}

int loader_next(struct loader *l, struct loader_batch *batch, struct error *e)
{
    double started = clock_monotonic(), worked = l->given_at ? started - l->given_at : 0;
    struct slot *s;

    assert_object(l, LOADER_MAGIC);
    *batch = (struct loader_batch){0};
    if (l->failed) {
        *e = l->failure;
        return -(int)e->code;
    }
    int rc = 0;
    if (l->config.dataset)
        rc = loader_take_ready(l, &s, e);
    else
        loader_next_synthetic(l, &s);
    if (rc) {
        l->failed = true;
        l->failure = *e;
        return rc;
    }
    struct cutmix_box unused;
    double lambda = s->batch.n > 0 ? loader_lambda_of(l, s, &unused) : 1;
    *batch = (struct loader_batch){
        .images = l->config.bf16           ? NULL
                  : l->mixed && lambda < 1 ? l->mixed
                                           : s->images,
        .images_bf16 = l->config.bf16 ? s->images : NULL,
        .image_size = s->image_size,
        .labels = s->labels,
        .indices = s->indices,
        .n = s->batch.n,
        .epoch = s->batch.epoch,
        .step = s->batch.step,
        .next_epoch_at = s->batch.next_epoch_at,
        .threads = l->thread_count,
        .lambda = lambda,
        .wait_seconds = clock_monotonic() - started,
    };
    trace_since(started, "phase", "data", 0);
    if (s->batch.n == 0) /* later calls return the end again */
        return 0;
    l->next++;
    if (l->config.dataset) {
        loader_add_threads(l, batch->n, worked, batch->wait_seconds);
        batch->threads = l->thread_count;
    }
    l->given_at = clock_monotonic();
    return 0;
}

int64_t loader_bad_images(const struct loader *l)
{
    assert_object(l, LOADER_MAGIC);
    return l->bad;
}
