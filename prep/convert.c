#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/dataset/manifest.h"
#include "common/json.h"
#include "common/rng.h"
#include "common/system/command_line.h"
#include "common/system/file.h"
#include "common/text.h"
#include "common/xalloc.h"
#include "config.h"
#include "prep/journal.h"
#include "prep/work.h"
#include "prep/prep.h"
#include "prep/source/source.h"
#include "prep/write/out_folder.h"
#include "prep/write/picture.h"
#include "prep/write/shard_writer.h"

static const char *const role_names[] = {[DATASET_TRAIN] = "train", [DATASET_EVAL] = "validation"};

struct convert_options {
    const char *from; /* imagenet, folder, idx or cifar */
    const char *in, *out;
    const char *classes_file; /* NULL: not given */
    int pad;       /* idx, cifar: width of the black border around each image, in pixels */
    int resize;    /* length of the short side of larger images; 0: do not resize */
    int quality;   /* of encoded JPEGs; 0: none is encoded for its size */
    bool reencode; /* smaller images too */
    int threads;
    int shards;
    int eval_shards; /* 0: an eighth of shards, at least 1 */
    int64_t seed;
    bool force; /* replace an earlier conversion in out */
    bool json;  /* print a JSON object */
};

struct job {
    const struct convert_options *options;
    struct source *source;
    struct journal *journal;
    struct progress progress;
    struct rng_permutation orders[2]; /* indexed by role */
    int shards[2];                    /* indexed by role; 0: the source has no such images */
    bool *done;                       /* (shards of both roles): finished by an earlier run */
};

/* A shard. Shards are numbered over both roles, training first. */
struct place {
    enum dataset_role role;
    int k, of;          /* number k of the role's `of` shards */
    int64_t first, end; /* range of the role's images, in shuffled order */
    char name[64];      /* for example "train/train-00003-of-00008" */
    char temporary[PATH_MAX], final[PATH_MAX];
};

static void convert_find_place(const struct job *job, int64_t i, struct place *p)
{
    bool train = i < job->shards[DATASET_TRAIN];

    p->role = train ? DATASET_TRAIN : DATASET_EVAL;
    p->k = (int)(train ? i : i - job->shards[DATASET_TRAIN]);
    p->of = job->shards[p->role];
    int64_t n = job->source->images[p->role];
    p->first = n * p->k / p->of; /* the sizes of shards differ by at most one */
    p->end = n * (p->k + 1) / p->of;
    const char *role = role_names[p->role], *out = job->options->out;
    snprintf(p->name, sizeof p->name, "%s/%s-%05d-of-%05d", role, role, p->k, p->of);
    file_path(p->final, NULL, "%s/%s", out, p->name);
    file_path(p->temporary, NULL, "%s/%s/.%s-%05d-of-%05d.tmp", out, role, role, p->k, p->of);
}

static int convert_all_shards(const struct job *job)
{
    return job->shards[DATASET_TRAIN] + job->shards[DATASET_EVAL];
}

static int convert_put_image(struct job *job, struct picture_maker *maker, struct shard_writer *w,
                             enum dataset_role role, int64_t i, struct error *e)
{
    const struct source_class_list *classes = &job->source->classes;
    struct source_image image = {0};
    struct tf_example x = {0};

    int rc = job->source->kind->read(job->source, role, i, &image, e);
    if (rc) {
        source_image_release(&image);
        return rc;
    }
    x.label = image.class + 1;
    x.synset = classes->names[image.class];
    x.text = classes->texts ? classes->texts[image.class] : x.synset;
    x.filename = image.filename;
    rc = picture_make(maker, &image, &x, e);
    if (rc)
        error_prefix(e, "%s", image.place);
    else
        rc = shard_writer_put(w, &x, e);
    progress_add(&job->progress, 1, (int64_t)x.jpeg_bytes);
    source_image_release(&image);
    return rc;
}

static int convert_write_shard(void *context, void *maker, int64_t i, struct error *e)
{
    struct job *job = context;
    struct shard_writer *w;
    struct place p;
    char hex[DIGEST_BYTES];
    uint64_t bytes;

    if (job->done[i])
        return 0;
    convert_find_place(job, i, &p);
    int rc = shard_writer_create(p.temporary, &w, e);
    for (int64_t at = p.first; at < p.end && rc == 0; at++) {
        rc = prep_interrupted ? error_set(e, ERR_INTERRUPTED, "interrupted") : 0;
        if (rc == 0)
            rc = convert_put_image(job, maker, w, p.role,
                                   rng_permutation_at(&job->orders[p.role], at), e);
    }
    if (rc) {
        shard_writer_abandon(w);
        return rc;
    }
    rc = shard_writer_finish(w, &bytes, hex, e);
    if (rc)
        return rc;
    return journal_add(job->journal,
                       json_pack("{s:s, s:I, s:I, s:s}", "file", p.name, "images",
                                 (json_int_t)(p.end - p.first), "bytes", (json_int_t)bytes,
                                 "xxh128", hex),
                       e);
}

static int convert_begin_thread(void *context, void **scratch, struct error *e)
{
    const struct convert_options *o = ((struct job *)context)->options;
    struct picture_options picture = {o->resize, o->quality, o->reencode};
    return picture_maker_create(&picture, (struct picture_maker **)scratch, e);
}

static void convert_end_thread(void *maker)
{
    picture_maker_destroy(maker);
}

static bool convert_is_there(const char *path, const json_t *shard)
{
    struct stat st;
    return stat(path, &st) == 0 &&
           st.st_size == json_integer_value(json_object_get(shard, "bytes"));
}

/* Finds the journal's shards that still exist, under the final names if renaming had begun. */
static int64_t convert_find_done(struct job *job)
{
    int64_t images = 0;
    struct place p;

    for (int i = 0; i < convert_all_shards(job); i++) {
        convert_find_place(job, i, &p);
        const json_t *shard = journal_find(job->journal, p.name);
        job->done[i] =
            shard && (convert_is_there(p.temporary, shard) || convert_is_there(p.final, shard));
        images += job->done[i] ? p.end - p.first : 0;
    }
    return images;
}

static json_t *convert_settings(const struct job *job)
{
    const struct convert_options *o = job->options;
    char identity[17];

    snprintf(identity, sizeof identity, "%016" PRIx64, job->source->identity);
    return json_pack("{s:i, s:s, s:I, s:i, s:i, s:i, s:i, s:i, s:b, s:s}", "format",
                     MANIFEST_FORMAT, "from", o->from, "seed", (json_int_t)o->seed, "shards",
                     job->shards[DATASET_TRAIN], "eval-shards", job->shards[DATASET_EVAL], "pad",
                     o->pad, "max-side", o->resize, "quality", o->quality, "reencode", o->reencode,
                     "input", identity);
}

static int convert_settle_shard(const struct place *p, struct error *e)
{
    if (rename(p->temporary, p->final) == 0)
        return 0;
    int reason = errno;
    if (access(p->final, F_OK) == 0)
        return 0;
    return error_set_errno(e, reason, "cannot rename %s to %s", p->temporary, p->final);
}

static int convert_describe_role(const struct job *job, enum dataset_role role, json_t *manifest,
                                 struct error *e)
{
    json_t *shards = json_array();
    struct place p;

    for (int k = 0; k < job->shards[role]; k++) {
        convert_find_place(job, role == DATASET_TRAIN ? k : job->shards[DATASET_TRAIN] + k, &p);
        json_array_append(shards, journal_find(job->journal, p.name));
    }
    if ((int)json_array_size(shards) == job->shards[role])
        return json_object_set_new(manifest, role_names[role],
                                   json_pack("{s:I, s:o}", "images",
                                             (json_int_t)job->source->images[role], "shards",
                                             shards));
    json_decref(shards);
    return error_set(e, ERR_INTERNAL, "a shard was not written");
}

static int convert_describe_classes(const struct source_class_list *classes, json_t *manifest,
                                    struct error *e)
{
    json_t *names = json_array(), *texts = json_array();
    int rc = 0;

    for (int i = 0; i < classes->count && rc == 0; i++)
        if (json_array_append_new(names, json_string(classes->names[i])) ||
            (classes->texts && json_array_append_new(texts, json_string(classes->texts[i]))))
            rc = error_set(e, ERR_INVALID, "the name of class %d is not UTF-8", i);
    json_object_set_new(manifest, "classes", names);
    if (classes->texts)
        json_object_set(manifest, "texts", texts);
    json_decref(texts);
    return rc;
}

static int convert_write_manifest(const struct job *job, const char *path, struct error *e)
{
    const struct convert_options *o = job->options;
    json_t *manifest =
        json_pack("{s:s, s:i, s:s, s:I, s:i, s:i, s:i, s:b}", "tool", "train-prep " PACKAGE_VERSION,
                  "format", MANIFEST_FORMAT, "source", o->from, "seed", (json_int_t)o->seed, "pad",
                  o->pad, "resize", o->resize, "quality", o->quality, "reencode", o->reencode);

    int rc = convert_describe_classes(&job->source->classes, manifest, e);
    for (enum dataset_role role = DATASET_TRAIN; role <= DATASET_EVAL && rc == 0; role++)
        if (job->shards[role])
            rc = convert_describe_role(job, role, manifest, e);
    if (rc == 0)
        rc = json_file_write(path, manifest, e);
    json_decref(manifest);
    return rc;
}

/* Writes the manifest first and renames it last, so that a full disk cannot leave it behind. */
static int convert_settle(const struct job *job, struct error *e)
{
    const char *out = job->options->out;
    char temporary[PATH_MAX], final[PATH_MAX];
    struct place p;

    file_path(temporary, NULL, "%s/." MANIFEST_NAME ".tmp", out);
    file_path(final, NULL, "%s/" MANIFEST_NAME, out);
    int rc = convert_write_manifest(job, temporary, e);
    for (int i = 0; i < convert_all_shards(job) && rc == 0; i++) {
        convert_find_place(job, i, &p);
        rc = convert_settle_shard(&p, e);
        if (rc == 0 && p.k == p.of - 1)
            file_sync_dir_of(p.final);
    }
    if (rc == 0 && rename(temporary, final))
        rc = error_set_errno(e, errno, "cannot rename %s to %s", temporary, final);
    if (rc == 0)
        file_sync_dir(out);
    if (rc == 0)
        journal_remove(out);
    return rc;
}

static int convert_check_job_options(struct job *job, struct error *e)
{
    const struct convert_options *o = job->options;
    const int64_t *images = job->source->images;

    if (strlen(o->out) > PATH_MAX - 256)
        return error_set(e, ERR_INVALID, "the path %s is too long", o->out);
    if (images[DATASET_EVAL] == 0 && o->eval_shards)
        return error_set(e, ERR_USAGE, "--eval-shards is given, but %s holds no validation images",
                         o->in);
    job->shards[DATASET_TRAIN] = images[DATASET_TRAIN] ? o->shards : 0;
    if (images[DATASET_EVAL])
        job->shards[DATASET_EVAL] = o->eval_shards ? o->eval_shards : (o->shards + 7) / 8;
    for (enum dataset_role role = DATASET_TRAIN; role <= DATASET_EVAL; role++)
        if (images[role] < job->shards[role])
            return error_set(e, ERR_INVALID, "%d %s shards are more than the %" PRId64 " images",
                             job->shards[role], role_names[role], images[role]);
    return 0;
}

static int convert_make_folders(const struct job *job, struct error *e)
{
    char folder[PATH_MAX];
    int rc = 0;

    for (enum dataset_role role = DATASET_TRAIN; role <= DATASET_EVAL && rc == 0; role++) {
        file_path(folder, NULL, "%s/%s", job->options->out, role_names[role]);
        if (job->shards[role])
            rc = file_make_dirs(folder, e);
    }
    return rc;
}

static int convert_write_shards(struct job *job, struct error *e)
{
    static const struct parallel_work work = {convert_begin_thread, convert_write_shard,
                                              convert_end_thread};
    const int64_t *images = job->source->images;
    int64_t done = convert_find_done(job);

    for (enum dataset_role role = DATASET_TRAIN; role <= DATASET_EVAL; role++)
        job->orders[role] =
            rng_permutation(images[role], rng_stream(job->options->seed, role, 0, RNG_CONVERT));
    if (done)
        fprintf(stderr,
                "train-prep: resuming an earlier run: %" PRId64 " of %" PRId64
                " images are in finished shards\n",
                done, images[DATASET_TRAIN] + images[DATASET_EVAL]);
    progress_begin(&job->progress, "convert", images[DATASET_TRAIN] + images[DATASET_EVAL] - done,
                   0);
    int rc = parallel_run(job->options->threads, convert_all_shards(job), &work, job, e);
    progress_end(&job->progress);
    return rc;
}

static int convert_write_all(struct job *job, struct error *e)
{
    json_t *set = convert_settings(job);
    int rc = journal_open(job->options->out, set, &job->journal, e);

    json_decref(set);
    if (rc)
        return rc;
    job->done = xcalloc((size_t)convert_all_shards(job), sizeof *job->done);
    rc = convert_make_folders(job, e);
    if (rc == 0)
        rc = convert_write_shards(job, e);
    if (rc == 0)
        rc = convert_settle(job, e);
    else if (journal_count(job->journal) == 0)
        journal_remove(job->options->out);
    else if (e->code != ERR_CORRUPT && e->code != ERR_INVALID) /* other errors would occur again */
        fprintf(stderr,
                "train-prep: %" PRId64
                " of %d shards are finished; run the same command again to continue\n",
                journal_count(job->journal), convert_all_shards(job));
    journal_close(job->journal);
    free(job->done);
    return rc;
}

static void convert_report_json(const struct job *job, double seconds)
{
    const int64_t *images = job->source->images;
    json_t *json = json_pack("{s:s, s:I, s:i, s:I, s:i, s:i, s:o, s:o}", "out", job->options->out,
                             "train_images", (json_int_t)images[DATASET_TRAIN], "train_shards",
                             job->shards[DATASET_TRAIN], "validation_images",
                             (json_int_t)images[DATASET_EVAL], "validation_shards",
                             job->shards[DATASET_EVAL], "classes", job->source->classes.count,
                             "images_per_sec", json_number((double)job->progress.images / seconds),
                             "bytes_per_sec", json_number((double)job->progress.bytes / seconds));

    json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(json);
}

static void convert_report(const struct job *job)
{
    const int64_t *images = job->source->images;
    double seconds = fmax(progress_seconds(&job->progress), 1e-9);

    if (job->options->json) {
        convert_report_json(job, seconds);
        return;
    }
    printf("%s: ", job->options->out);
    if (images[DATASET_TRAIN])
        printf("%" PRId64 " training images in %d shard%s", images[DATASET_TRAIN],
               job->shards[DATASET_TRAIN], plural(job->shards[DATASET_TRAIN]));
    if (images[DATASET_EVAL])
        printf("%s%" PRId64 " validation images in %d", images[DATASET_TRAIN] ? ", " : "",
               images[DATASET_EVAL], job->shards[DATASET_EVAL]);
    printf(", %d classes; %.0f images/s, %.1f MB/s\n", job->source->classes.count,
           (double)job->progress.images / seconds, (double)job->progress.bytes * 1e-6 / seconds);
}

/* Writes out/train/train-%05d-of-%05d, out/validation/validation-%05d-of-%05d and, last,
 * out/manifest.json (common/dataset/manifest.h). All images of a role are shuffled by the seed.
 * Everything is written under temporary names and renamed at the end. Shards that were finished by
 * an interrupted or failed run with the same options are kept; the result has the same bytes.
 * Returns ERR_CONFLICT if out contains other data or an unfinished conversion with other options,
 * or another process is writing it. */
static int convert_run(const struct convert_options *o, struct error *e)
{
    struct source_options source = {.classes_file = o->classes_file, .pad = o->pad};
    struct job job = {.options = o};
    int lock;

    int rc = source_open(o->from, o->in, &source, &job.source, e);
    if (rc)
        return rc;
    rc = convert_check_job_options(&job, e);
    if (rc == 0)
        rc = out_folder_take(o->out, o->force, &lock, e);
    if (rc == 0) {
        rc = convert_write_all(&job, e);
        close(lock);
    }
    if (rc == 0)
        convert_report(&job);
    source_destroy(job.source);
    return rc;
}

#define IMAGENET_SHARDS 1024 /* as in imagenet_to_gcs.py; the validation gets an eighth, 128 */
#define SHARDS_MAX      99999

#define AT(field) offsetof(struct convert_options, field)

/* clang-format off */
static const struct command_option convert_table[] = {
    {.name = "from", .letter = 'f', .value = "KIND", .kind = OPTION_TEXT, .offset = AT(from), .required = true,
     .help = "imagenet (the downloaded tar files), folder (class folders of JPEG and PNG files), idx (MNIST-style files, "
             "plain or .gz) or cifar (the binary version)"},
    {.name = "in", .value = "PATH", .kind = OPTION_TEXT, .offset = AT(in), .required = true,
     .help = "input folder; for cifar also its .tar.gz"},
    {.name = "out", .letter = 'o', .value = "DIR", .kind = OPTION_TEXT, .offset = AT(out), .required = true,
     .help = "output folder, for DIR/train, DIR/validation, DIR/manifest.json"},
    {.name = "shards", .value = "N", .kind = OPTION_INT, .offset = AT(shards), .min = 1, .max = SHARDS_MAX,
     .help = "number of training shards (default for imagenet: 1024)"},
    {.name = "eval-shards", .value = "M", .kind = OPTION_INT, .offset = AT(eval_shards), .min = 1, .max = SHARDS_MAX,
     .help = "number of validation shards (default: an eighth of N, at least 1)"},
    {.name = "seed", .value = "S", .kind = OPTION_INT64, .offset = AT(seed), .max = INT64_MAX,
     .help = "seed of the shuffle (default: 1)"},
    {.name = "threads", .value = "N", .kind = OPTION_INT, .offset = AT(threads), .min = 1, .max = PARALLEL_THREADS_MAX,
     .help = "shards to write in parallel (default: one per core)"},
    {.name = "max-side", .value = "N", .kind = OPTION_INT, .offset = AT(resize), .min = 16, .max = 10000,
     .help = "reduce the short side of larger images to N pixels (default: keep the size)"},
    {.name = "resize", .value = "N", .kind = OPTION_INT, .offset = AT(resize), .min = 16, .max = 10000,
     .help = "the same as --max-side"},
    {.name = "quality", .value = "Q", .kind = OPTION_INT, .offset = AT(quality), .min = 1, .max = 100,
     .help = "quality of the JPEGs that --max-side and --reencode make, 1 to 100 (default: 95)"},
    {.name = "reencode", .kind = OPTION_FLAG, .offset = AT(reencode),
     .help = "encode all images at this quality, except those that would become larger files"},
    {.name = "classes", .value = "FILE", .kind = OPTION_TEXT, .offset = AT(classes_file),
     .help = "names of the classes, one per line (idx; default: 0, 1, ...)"},
    {.name = "pad", .value = "N", .kind = OPTION_INT, .offset = AT(pad), .max = 1000,
     .help = "width of a black border around each image (idx and cifar; default: 0)"},
    {.name = "force", .kind = OPTION_FLAG, .offset = AT(force),
     .help = "replace an earlier conversion in DIR, finished or not"},
    {.name = "json", .kind = OPTION_FLAG, .offset = AT(json),
     .help = "print one JSON object"},
    {0},
};
/* clang-format on */

static int convert_check_options(void *fields, struct error *e)
{
    struct convert_options *o = fields;

    if (!o->shards && strcmp(o->from, "imagenet") == 0)
        o->shards = IMAGENET_SHARDS;
    if (!o->shards)
        return error_set(e, ERR_USAGE, "--shards is missing");
    if (!o->resize && !o->reencode && o->quality)
        return error_set(e, ERR_USAGE, "--quality needs --max-side or --reencode");
    if ((o->resize || o->reencode) && !o->quality)
        o->quality = 95;
    if (!o->threads)
        o->threads = parallel_default_threads();
    return 0;
}

static int convert_command_run(int argc, char **argv, struct error *e)
{
    static const struct command_line line = {
        .program = "train-prep convert",
        .usage = "Usage: train-prep convert [OPTION...]",
        .options = convert_table,
        .doc = "Makes TFRecord shards of labelled JPEGs in the format of TensorFlow's "
               "imagenet_to_gcs, shuffled by seed. The same input and seed give the same bytes.",
        .check = convert_check_options,
    };
    struct convert_options o = {.seed = 1};

    int rc = command_line_read(&line, argc, argv, &o);
    return rc >= 0 ? rc : convert_run(&o, e);
}

const struct prep_command convert_command = {
    "convert", "make TFRecord shards from ImageNet's tars, class folders, IDX files or CIFAR",
    convert_command_run};
