
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/rng.h"
#include "common/text.h"
#include "common/system/command_line.h"
#include "common/system/file.h"
#include "common/xalloc.h"
#include "prep/audit/audit_checks.h"
#include "prep/audit/audit_shard.h"
#include "prep/prep.h"
#include "prep/work.h"

static bool audit_same_files(const struct dataset_list *a, const struct dataset_list *b)
{
    return a->count && b->count && strcmp(a->files[0], b->files[0]) == 0;
}

static int audit_open_role(struct audit *a, enum dataset_role role, struct error *e)
{
    struct audit_role *r = &a->roles[role];
    struct dataset_part part =
        role == DATASET_TRAIN ? a->manifest.part : (struct dataset_part){0, 1};

    int rc = dataset_list_find(a->options->dir, role, part, &r->list, e);
    if (rc)
        return rc;
    if (r->list.format != DATASET_TFRECORD)
        return error_set(
            e, ERR_UNSUPPORTED,
            "%s contains no TFRecord shards; convert class folders with train-prep convert first",
            a->options->dir);
    r->shards = xcalloc(r->list.count, sizeof *r->shards);
    r->present = true;
    return 0;
}

static void audit_drop_role(struct audit_role *r)
{
    for (size_t s = 0; r->shards && s < r->list.count; s++)
        free(r->shards[s].records);
    free(r->shards);
    dataset_list_free(&r->list);
    *r = (struct audit_role){0};
}

/* Looks in the folder or, if it is that of one role, in its parent. */
static void audit_open_manifest(struct audit *a, struct error *e)
{
    char above[PATH_MAX];
    int rc = manifest_shards_read(a->options->dir, &a->manifest, e);

    a->manifest_here = rc == 0;
    if (rc == -ERR_NOT_FOUND) {
        manifest_shards_free(&a->manifest);
        file_path(above, NULL, "%s/..", a->options->dir);
        rc = manifest_shards_read(above, &a->manifest, e);
    }
    a->has_manifest = rc == 0;
    if (rc == 0)
        return;
    manifest_shards_free(&a->manifest);
    a->manifest.part = (struct dataset_part){0, 1};
    a->manifest_broken = rc != -ERR_NOT_FOUND;
    if (a->manifest_broken)
        audit_find(a, "%s", e->text);
}

/* If a role is missing, listing it returns the shards of the other role. */
static int audit_open_roles(struct audit *a, struct error *e)
{
    struct audit_role *train = &a->roles[DATASET_TRAIN], *eval = &a->roles[DATASET_EVAL];
    int rc = audit_open_role(a, DATASET_TRAIN, e);

    if (rc && rc != -ERR_NOT_FOUND && !train->list.lacks_role)
        return rc;
    if (rc) {
        if (!train->list.lacks_role)
            audit_find(a, "%s", e->text);
        audit_drop_role(train);
    }
    rc = audit_open_role(a, DATASET_EVAL, e);
    if (rc && rc != -ERR_UNSUPPORTED && !eval->list.lacks_role)
        audit_find(a, "%s", e->text);
    if (rc || audit_same_files(&train->list, &eval->list)) {
        const char *name = rc ? "" : strrchr(train->list.files[0], '/') + 1;
        audit_drop_role(strncmp(name, "validation-", 11) == 0 ? train : eval);
    }
    return rc == -ERR_NOT_FOUND || (rc && train->present) ? 0 : rc;
}

static int audit_begin_thread(void *context, void **scratch, struct error *e)
{
    struct audit_reader *r = xcalloc(1, sizeof *r);

    (void)context;
    *scratch = r;
    return jpeg_decoder_create(&r->decoder, e);
}

static void audit_end_thread(void *scratch)
{
    struct audit_reader *r = scratch;
    jpeg_decoder_destroy(r->decoder);
    free(r->buffer);
    free(r);
}

static int audit_walk_item(void *context, void *scratch, int64_t i, struct error *e)
{
    struct audit *a = context;
    int64_t trains = (int64_t)a->roles[DATASET_TRAIN].list.count;
    bool train = i < trains;
    return audit_walk(a, scratch, train ? DATASET_TRAIN : DATASET_EVAL,
                      (uint32_t)(train ? i : i - trains), e);
}

static int audit_walk_shards(struct audit *a, struct error *e)
{
    static const struct parallel_work work = {audit_begin_thread, audit_walk_item,
                                              audit_end_thread};
    int64_t bytes = 0, shards = 0;

    for (int role = 0; role < 2; role++)
        for (size_t s = 0; s < a->roles[role].list.count; s++, shards++)
            bytes += (int64_t)a->roles[role].list.bytes[s];
    progress_begin(&a->progress, "audit", 0, bytes);
    int rc = parallel_run(a->options->threads, shards, &work, a, e);
    progress_end(&a->progress);
    for (int role = 0; role < 2; role++)
        for (size_t s = 0; s < a->roles[role].list.count; s++)
            a->roles[role].images += a->roles[role].shards[s].count;
    return rc;
}

struct sample {
    struct audit *audit;
    struct rng_permutation order;
    int64_t count;
};

static const struct audit_record *audit_find_record(const struct audit *a, int64_t i,
                                                    enum dataset_role *role)
{
    for (*role = DATASET_TRAIN; *role <= DATASET_EVAL; (*role)++)
        for (size_t s = 0; s < a->roles[*role].list.count; s++) {
            const struct audit_shard *shard = &a->roles[*role].shards[s];
            if (i < shard->count)
                return &shard->records[i];
            i -= shard->count;
        }
    return NULL;
}

static int audit_decode_item(void *context, void *scratch, int64_t i, struct error *e)
{
    struct sample *s = context;
    enum dataset_role role;

    if (prep_interrupted)
        return error_set(e, ERR_INTERRUPTED, "interrupted");
    const struct audit_record *record =
        audit_find_record(s->audit, rng_permutation_at(&s->order, i), &role);
    int rc = audit_decode(s->audit, scratch, role, record, e);
    progress_add(&s->audit->progress, 1, (int64_t)record->bytes);
    return rc;
}

static int audit_decode_sample(struct audit *a, struct error *e)
{
    static const struct parallel_work work = {audit_begin_thread, audit_decode_item,
                                              audit_end_thread};
    int64_t images = a->roles[DATASET_TRAIN].images + a->roles[DATASET_EVAL].images;
    struct sample s = {a, rng_permutation(images, rng_stream(1, 0, 0, RNG_CONVERT)),
                       a->options->sample < images ? a->options->sample : images};

    if (a->options->all || s.count == 0)
        return 0;
    progress_begin(&a->progress, "decode", s.count, 0);
    int rc = parallel_run(a->options->threads, s.count, &work, &s, e);
    progress_end(&a->progress);
    return rc;
}

static void audit_check_records(struct audit *a)
{
    const struct audit_role *train = &a->roles[DATASET_TRAIN], *eval = &a->roles[DATASET_EVAL];
    int64_t damaged = 0;

    for (int role = 0; role < 2; role++)
        for (size_t s = 0; s < a->roles[role].list.count; s++)
            damaged += a->roles[role].shards[s].damaged;
    bool missing = json_array_size(a->findings) > 0 && (!train->present || !eval->present);
    audit_say(a, "records", damaged || missing ? AUDIT_PROBLEM : AUDIT_OK,
              json_pack("{s:I, s:I, s:I, s:I, s:I}", "train_images", (json_int_t)train->images,
                        "train_shards", (json_int_t)train->list.count, "validation_images",
                        (json_int_t)eval->images, "validation_shards", (json_int_t)eval->list.count,
                        "damaged", (json_int_t)damaged),
              "%" PRId64 " training images in %zu shard%s, %" PRId64 " validation images in %zu; "
              "%" PRId64 " records are damaged",
              train->images, train->list.count, plural((int64_t)train->list.count), eval->images,
              eval->list.count, damaged);
    int64_t images = train->images + eval->images;
    char broken[48] = "none damaged";
    if (a->undecodable)
        snprintf(broken, sizeof broken, "%" PRId64 " of them damaged", a->undecodable);
    audit_say(a, "pictures", a->undecodable ? AUDIT_PROBLEM : AUDIT_OK,
              json_pack("{s:I, s:I}", "decoded", (json_int_t)a->decoded, "undecodable",
                        (json_int_t)a->undecodable),
              "%" PRId64 " of %" PRId64 " images decoded, %s", a->decoded, images, broken);
}

static void audit_check_orientation(struct audit *a)
{
    if (a->turned > 0)
        audit_say(
            a, "orientation", AUDIT_WARNING, json_pack("{s:I}", "turned", (json_int_t)a->turned),
            "%" PRId64 " image%s stored turned or mirrored (Exif orientation), such as %s: "
            "training does not turn them, as PIL and TensorFlow do not; to turn the pixels, run "
            "exiftran -ai FILE... or mogrify -auto-orient FILE... and convert again",
            a->turned, a->turned == 1 ? " is" : "s are", a->first_turned);
}

static void audit_count_classes(struct audit *a)
{
    a->classes = (int)json_array_size(json_object_get(a->manifest.manifest, "classes"));
    if (a->has_manifest && a->classes > 0)
        return;
    int most = -1;
    for (int role = 0; role < 2; role++)
        for (size_t s = 0; s < a->roles[role].list.count; s++)
            for (int64_t i = 0; i < a->roles[role].shards[s].count; i++)
                if (a->roles[role].shards[s].records[i].label > most)
                    most = a->roles[role].shards[s].records[i].label;
    /* Limits the tables if a single invalid label is huge. */
    a->classes = most < 1000000 ? most + 1 : 1000000;
}

static int audit_check_all(struct audit *a, struct error *e)
{
    audit_count_classes(a);
    audit_check_records(a);
    audit_check_orientation(a);
    audit_check_labels(a);
    int rc = audit_check_duplicates(a, e);
    if (rc == 0)
        rc = audit_check_mixing(a, e);
    audit_check_balance(a);
    audit_check_manifest(a);
    audit_check_names(a);
    return rc ? rc : audit_check_plan(a, e);
}

static const char *audit_overall_verdict(const struct audit *a)
{
    const char *worst = "fine";
    const json_t *check;
    size_t i;

    json_array_foreach (a->checks, i, check) {
        const char *status = json_string_value(json_object_get(check, "status"));
        if (strcmp(status, "problem") == 0)
            return "problems";
        if (strcmp(status, "warning") == 0)
            worst = "warnings";
    }
    return worst;
}

static void audit_print_table(const struct audit *a)
{
    const json_t *check, *finding;
    size_t i;

    json_array_foreach (a->checks, i, check)
        printf("%-22s %-8s %s\n", json_string_value(json_object_get(check, "check")),
               json_string_value(json_object_get(check, "status")),
               json_string_value(json_object_get(check, "text")));
    json_array_foreach (a->findings, i, finding)
        printf("  %s\n", json_string_value(finding));
    if (json_array_size(a->findings) == AUDIT_FINDINGS_MAX)
        printf("  possibly more: only the first %d are listed\n", AUDIT_FINDINGS_MAX);
    printf("%s: %s\n", a->options->dir, audit_overall_verdict(a));
}

static void audit_print_json(const struct audit *a)
{
    json_t *out = json_pack("{s:s, s:s, s:O, s:O}", "dir", a->options->dir, "verdict",
                            audit_overall_verdict(a), "checks", a->checks, "findings", a->findings);
    json_dumpf(out, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(out);
}

static int audit_run(struct audit *a, struct error *e)
{
    audit_open_manifest(a, e);
    int rc = audit_open_roles(a, e);
    if (rc == 0)
        rc = audit_walk_shards(a, e);
    if (rc == 0)
        rc = audit_decode_sample(a, e);
    if (rc == 0)
        rc = audit_check_all(a, e);
    if (rc)
        return rc;
    if (a->options->json)
        audit_print_json(a);
    else
        audit_print_table(a);
    return fflush(stdout) ? error_set(e, ERR_IO, "cannot write to standard output") : 0;
}

/* Sets *problems if the data should not be used for training. */
static int audit_all(const struct audit_options *o, bool *problems, struct error *e)
{
    struct audit a = {.options = o};

    if (access(o->dir, R_OK | X_OK))
        return error_set_errno(e, errno, "cannot read %s", o->dir);
    a.findings = json_array();
    a.checks = json_array();
    pthread_mutex_init(&a.lock, NULL);
    int rc = audit_run(&a, e);
    *problems = strcmp(audit_overall_verdict(&a), "problems") == 0;
    for (int role = 0; role < 2; role++)
        audit_drop_role(&a.roles[role]);
    manifest_shards_free(&a.manifest);
    json_decref(a.findings);
    json_decref(a.checks);
    pthread_mutex_destroy(&a.lock);
    return rc;
}

#define SAMPLE_DEFAULT 10000

#define AT(field) offsetof(struct audit_options, field)

/* clang-format off */
static const struct command_option audit_table[] = {
    {.name = "sample", .value = "N", .kind = OPTION_INT64, .offset = AT(sample), .max = INT64_MAX,
     .help = "decode N images, chosen at random (default: 10000)"},
    {.name = "all", .kind = OPTION_FLAG, .offset = AT(all),
     .help = "decode every image"},
    {.name = "plan", .value = "FILE", .kind = OPTION_TEXT, .offset = AT(plan),
     .help = "also check whether the workers of this job divide the data evenly"},
    {.name = "threads", .value = "N", .kind = OPTION_INT, .offset = AT(threads), .min = 1, .max = PARALLEL_THREADS_MAX,
     .help = "shards to read in parallel (default: one per core)"},
    {.name = "json", .kind = OPTION_FLAG, .offset = AT(json),
     .help = "print one JSON object"},
    {0},
};
/* clang-format on */

static int audit_check_options(void *fields, struct error *e)
{
    struct audit_options *o = fields;

    if (o->all && o->sample != SAMPLE_DEFAULT)
        return error_set(e, ERR_USAGE, "--all and --sample exclude each other");
    if (!o->threads)
        o->threads = parallel_default_threads();
    return 0;
}

static int audit_command_run(int argc, char **argv, struct error *e)
{
    static const struct command_line line = {
        .program = "train-prep audit",
        .usage = "Usage: train-prep audit [OPTION...] DIR",
        .options = audit_table,
        .operand = "DIR",
        .operand_offset = AT(dir),
        .doc = "Checks TFRecord shards: every checksum, a sample of the pictures, classes, "
               "duplicates, mixing of classes, and the manifest. Exit status: 0 OK (or only "
               "warnings), 1 problems, 2 wrong use.",
        .check = audit_check_options,
    };
    struct audit_options o = {.sample = SAMPLE_DEFAULT};
    bool problems;

    int rc = command_line_read(&line, argc, argv, &o);
    if (rc >= 0)
        return rc;
    rc = audit_all(&o, &problems, e);
    if (rc == 0 && problems)
        rc = error_set(e, ERR_CORRUPT, "%s has problems", o.dir);
    return rc;
}

const struct prep_command audit_command = {
    "audit", "check a data set: checksums, pictures, classes, mixing, duplicates",
    audit_command_run};
