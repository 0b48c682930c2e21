/*
 * state.json of a checkpoint: the input as it is, and, where it is JSON, once more with the digests
 * put right, as they stop almost every change.
 */
#include "worker/save/state.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/digest.h"
#include "common/job/job_document.h"
#include "common/json.h"
#include "common/run/checkpoints.h"
#include "tests/fuzz/fuzz.h"

static struct job_spec *spec;
static json_t *digests;
static char folder[PATH_MAX];

static void state_begin(void)
{
    static const char *const names[] = {CHECKPOINT_MODEL, CHECKPOINT_OPTIMIZER, CHECKPOINT_EMA,
                                        "statistics-0.safetensors"};
    struct problems problems = {0};
    struct error e;
    char name[128], hex[DIGEST_BYTES];
    json_t *document = json_pack("{s:{s:s, s:s, s:i, s:i}, s:{s:s}, s:i}", "model", "arch",
                                 "resnet18", "stem", "small", "classes", 10, "image_size", 32,
                                 "data", "train", "synthetic", "seed", 1);

    spec = job_spec_parse(document, NULL, NULL, &problems);
    FUZZ_CHECK(spec, "the job is refused");
    json_decref(document);
    snprintf(folder, sizeof folder, "%s/step-00000001", fuzz_folder());
    mkdir(folder, 0700);
    digests = json_object();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(name, sizeof name, "step-00000001/%s", names[i]);
        const char *path = fuzz_file(name, "weights", 7);
        FUZZ_CHECK(digest_file(path, hex, &e) == 0, "%s", e.text);
        json_object_set_new(digests, names[i], json_string(hex));
    }
}

static void read_state(const void *text, size_t bytes)
{
    struct run_state s;
    struct error e;

    fuzz_file("step-00000001/state.json", text, bytes);
    if (run_state_read(folder, spec, &s, &e))
        return;
    FUZZ_CHECK(s.step >= 1 && s.epoch >= 0 && s.epoch_images >= 0 && s.world_size >= 1 &&
                   s.global_batch >= 1 && s.epoch_images <= s.train_images,
               "step %lld, epoch %lld", (long long)s.step, (long long)s.epoch);
    FUZZ_CHECK(isfinite(s.peak_lr) && isfinite(s.lr) && isfinite(s.run_started), "rate %g of %g",
               s.lr, s.peak_lr);
    FUZZ_CHECK(s.tuning.count >= 0 && s.tuning.count <= TUNED_SHAPES_MAX, "%d shapes",
               s.tuning.count);
}

int fuzz_state(const uint8_t *data, size_t bytes)
{
    struct error e;
    char hex[DIGEST_BYTES];

    if (!spec)
        state_begin();
    read_state(data, bytes);
    json_t *state = json_document_parse((const char *)data, bytes, &e);
    if (!state)
        return 0;
    json_object_set(state, "files", digests);
    checkpoint_state_digest(state, hex);
    json_object_set_new(state, "xxh128", json_string(hex));
    char *text = json_dumps(state, JSON_REAL_PRECISION(17));
    read_state(text, strlen(text));
    free(text);
    json_decref(state);
    return 0;
}
