#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL /* one definition of the streaming state, on the stack */
#include <xxhash.h>

#include "common/clock.h"
#include "common/dataset/manifest.h"
#include "common/file.h"
#include "common/json.h"
#include "common/rng.h"
#include "common/tfrecord.h"
#include "config.h"
#include "prep/out_folder.h"
#include "prep/prep.h"
#include "prep/source.h"

static const char *const role_names[] = {[DATASET_TRAIN] = "train", [DATASET_EVAL] = "validation"};

struct job {
    const struct convert_options *options;
    struct source *source;
    json_t *manifest;
    double started;
};

/* One shard as it is written. */
struct shard {
    FILE *file;
    uint64_t bytes;
    XXH3_state_t hash;
    char name[64]; /* "train/train-00003-of-00008" */
    char temporary[PATH_MAX];
};

static int shards_of(const struct convert_options *o, enum dataset_role role)
{
    if (role == DATASET_TRAIN)
        return o->shards;
    return o->eval_shards ? o->eval_shards : (o->shards + 7) / 8;
}

static void shard_paths(const struct convert_options *o, enum dataset_role role, int k,
                        char temporary[PATH_MAX], char final[PATH_MAX])
{
    const char *role_name = role_names[role];
    int of = shards_of(o, role);
    snprintf(temporary, PATH_MAX, "%s/%s/.%s-%05d-of-%05d.tmp", o->out, role_name, role_name, k,
             of);
    snprintf(final, PATH_MAX, "%s/%s/%s-%05d-of-%05d", o->out, role_name, role_name, k, of);
}

static int put(struct shard *s, const void *data, size_t bytes, struct error *e)
{
    XXH3_128bits_update(&s->hash, data, bytes);
    s->bytes += bytes;
    if (fwrite(data, 1, bytes, s->file) == bytes)
        return 0;
    return error_set_errno(e, errno, "cannot write %s", s->temporary);
}

static int put_record(struct shard *s, const struct tf_example *x, struct error *e)
{
    uint8_t header[TFRECORD_HEADER_BYTES], footer[TFRECORD_FOOTER_BYTES], *payload;
    size_t bytes;

    int rc = tf_example_pack(x, &payload, &bytes, e);
    if (rc)
        return rc;
    tfrecord_header(bytes, header);
    tfrecord_footer(payload, bytes, footer);
    rc = put(s, header, sizeof header, e);
    if (rc == 0)
        rc = put(s, payload, bytes, e);
    if (rc == 0)
        rc = put(s, footer, sizeof footer, e);
    free(payload);
    return rc;
}

static int put_images(struct job *job, struct shard *s, enum dataset_role role,
                      const struct rng_permutation *order, int64_t first, int64_t end,
                      struct error *e)
{
    struct tf_example x;
    int rc = 0;

    for (int64_t at = first; at < end && rc == 0; at++) {
        if (prep_interrupted)
            return error_set(e, ERR_INTERRUPTED, "interrupted; nothing was kept");
        rc = job->source->read(job->source, role, rng_permutation_at(order, at), &x, e);
        if (rc == 0)
            rc = put_record(s, &x, e);
        progress(role_names[role], at + 1, job->source->images[role], job->started);
    }
    return rc;
}

static int shard_finish(struct shard *s, int rc, struct error *e)
{
    if (rc == 0 && (fflush(s->file) || fsync(fileno(s->file))))
        rc = error_set_errno(e, errno, "cannot write %s", s->temporary);
    if (fclose(s->file) && rc == 0)
        rc = error_set_errno(e, errno, "cannot write %s", s->temporary);
    return rc;
}

static void describe_shard(json_t *shards, const struct shard *s, int64_t images)
{
    XXH128_canonical_t canonical;
    char hex[2 * sizeof canonical + 1];

    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&s->hash));
    for (size_t i = 0; i < sizeof canonical; i++)
        snprintf(hex + 2 * i, 3, "%02x", canonical.digest[i]);
    json_array_append_new(shards, json_pack("{s:s, s:I, s:I, s:s}", "file", s->name, "images",
                                            (json_int_t)images, "bytes", (json_int_t)s->bytes,
                                            "xxh128", hex));
}

static int write_shard(struct job *job, enum dataset_role role, int k,
                       const struct rng_permutation *order, json_t *shards, struct error *e)
{
    const struct convert_options *o = job->options;
    int64_t n = job->source->images[role], count = shards_of(o, role);
    int64_t first = n * k / count, end = n * (k + 1) / count; /* sizes differ by at most one */
    struct shard s = {0};
    char final[PATH_MAX];

    shard_paths(o, role, k, s.temporary, final);
    snprintf(s.name, sizeof s.name, "%s/%s", role_names[role], strrchr(final, '/') + 1);
    XXH3_128bits_reset(&s.hash);
    s.file = fopen(s.temporary, "wbxe");
    if (!s.file)
        return error_set_errno(e, errno, "cannot create %s", s.temporary);
    int rc = put_images(job, &s, role, order, first, end, e);
    rc = shard_finish(&s, rc, e);
    if (rc == 0)
        describe_shard(shards, &s, end - first);
    return rc;
}

static int write_role(struct job *job, enum dataset_role role, struct error *e)
{
    const struct convert_options *o = job->options;
    int64_t n = job->source->images[role];
    struct rng_permutation order = rng_permutation(n, rng_stream(o->seed, role, 0, RNG_CONVERT));
    char folder[PATH_MAX];
    json_t *shards = json_array();

    json_object_set_new(job->manifest, role_names[role],
                        json_pack("{s:I, s:o}", "images", (json_int_t)n, "shards", shards));
    snprintf(folder, sizeof folder, "%s/%s", o->out, role_names[role]);
    int rc = file_make_dirs(folder, e);
    job->started = clock_monotonic();
    for (int k = 0; k < shards_of(o, role) && rc == 0; k++)
        rc = write_shard(job, role, k, &order, shards, e);
    return rc;
}

static void manifest_paths(const struct convert_options *o, char temporary[PATH_MAX],
                           char final[PATH_MAX])
{
    snprintf(temporary, PATH_MAX, "%s/." MANIFEST_NAME ".tmp", o->out);
    snprintf(final, PATH_MAX, "%s/" MANIFEST_NAME, o->out);
}

static int settle_file(const char *temporary, const char *final, int rc, struct error *e)
{
    if (rc)
        unlink(temporary);
    else if (rename(temporary, final))
        rc = error_set_errno(e, errno, "cannot rename %s to %s", temporary, final);
    return rc;
}

/* Renames (or, after a failure, removes) the temporary files, the manifest last. */
static int settle(const struct job *job, int rc, struct error *e)
{
    char temporary[PATH_MAX], final[PATH_MAX];

    for (enum dataset_role role = DATASET_TRAIN; role <= DATASET_EVAL; role++) {
        if (job->source->images[role] == 0)
            continue;
        for (int k = 0; k < shards_of(job->options, role); k++) {
            shard_paths(job->options, role, k, temporary, final);
            rc = settle_file(temporary, final, rc, e);
        }
    }
    manifest_paths(job->options, temporary, final);
    return settle_file(temporary, final, rc, e);
}

static int write_manifest(struct job *job, struct error *e)
{
    const struct source_class_list *classes = &job->source->classes;
    json_t *names = json_array();
    char temporary[PATH_MAX], final[PATH_MAX];

    for (int i = 0; i < classes->count; i++)
        if (json_array_append_new(names, json_string(classes->names[i]))) {
            json_decref(names);
            return error_set(e, ERR_INVALID, "the name of class %d is not UTF-8", i);
        }
    json_object_set_new(job->manifest, "classes", names);
    manifest_paths(job->options, temporary, final);
    return json_file_write(temporary, job->manifest, e);
}

static int check_options(const struct convert_options *o, const struct source *s, struct error *e)
{
    if (strlen(o->out) > PATH_MAX - 128)
        return error_set(e, ERR_INVALID, "the path %s is too long", o->out);
    if (s->images[DATASET_EVAL] == 0 && o->eval_shards)
        return error_set(e, ERR_USAGE, "--eval-shards is given, but %s holds no validation images",
                         o->in);
    for (enum dataset_role role = DATASET_TRAIN; role <= DATASET_EVAL; role++)
        if (s->images[role] && s->images[role] < shards_of(o, role))
            return error_set(e, ERR_INVALID, "%d %s shards are more than the %" PRId64 " images",
                             shards_of(o, role), role_names[role], s->images[role]);
    return 0;
}

static int write_all(struct job *job, struct error *e)
{
    int rc = 0;

    for (enum dataset_role role = DATASET_TRAIN; role <= DATASET_EVAL && rc == 0; role++)
        if (job->source->images[role] > 0)
            rc = write_role(job, role, e);
    /* Written before anything is renamed: a disk that is full now leaves nothing that looks
     * complete. */
    if (rc == 0)
        rc = write_manifest(job, e);
    return settle(job, rc, e);
}

static void report(const struct job *job)
{
    const struct convert_options *o = job->options;
    const int64_t *images = job->source->images;

    printf("%s: %" PRId64 " training images in %d shards", o->out, images[DATASET_TRAIN],
           shards_of(o, DATASET_TRAIN));
    if (images[DATASET_EVAL])
        printf(", %" PRId64 " validation images in %d", images[DATASET_EVAL],
               shards_of(o, DATASET_EVAL));
    printf(", %d classes\n", job->source->classes.count);
}

int convert(const struct convert_options *o, struct error *e)
{
    struct source_options source = {.classes_file = o->classes_file, .pad = o->pad};
    struct job job = {.options = o};
    int lock;

    int rc = source_open(o->from, o->in, &source, &job.source, e);
    if (rc)
        return rc;
    rc = check_options(o, job.source, e);
    if (rc == 0)
        rc = out_folder_take(o->out, o->force, &lock, e);
    if (rc == 0) {
        job.manifest = json_pack("{s:s, s:i, s:s, s:I, s:i}", "tool", "train-prep " PACKAGE_VERSION,
                                 "format", MANIFEST_FORMAT, "source", o->from, "seed",
                                 (json_int_t)o->seed, "pad", o->pad);
        rc = write_all(&job, e);
        json_decref(job.manifest);
        close(lock);
    }
    if (rc == 0)
        report(&job);
    source_destroy(job.source);
    return rc;
}
