/*
 * state.json of a checkpoint: the position of a run, and what must be unchanged to resume it.
 *
 * The position in the data is an epoch and the number of its images used, so that it remains valid
 * if the global batch changes. `step` counts updates of the weights; schedule_step counts steps of
 * the plan, which determine the learning rate. They differ once the global batch has changed.
 */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/digest.h"
#include "common/error.h"
#include "common/job/job_spec.h"
#include "worker/model/tuning.h"
#include "worker/monitor.h"

struct evaluation {
    double top1, top5;        /* fractions of all images */
    double loss;              /* mean, without label smoothing */
    double calibration_error; /* rank 0; see predictions_finish; not stored */
    int64_t images;           /* including those that could not be decoded, which count as wrong */
    double seconds;
    double ended; /* monotonic clock; neither this nor `seconds` is stored */
    bool has_raw; /* the members above are of the averaged weights, those below of the trained
                     weights */
    double raw_top1, raw_top5, raw_loss;
    bool is_kept; /* one of checkpoint.keep_best; not stored */
};

/* Digest of a sequence of numbers: each step digests the previous digest and new numbers, so that a
 * resumed run ends with the same digest. "": empty; CHAIN_UNKNOWN: resumed without it. */
struct digest_chain {
    char hex[DIGEST_BYTES];
};
#define CHAIN_UNKNOWN "?"

/* Adds the bits of the numbers. A digest that is CHAIN_UNKNOWN does not change. */
void digest_chain_add(struct digest_chain *c, const double *numbers, int count);

/* text: from a checkpoint; NULL: the checkpoint has none. */
void digest_chain_resume(struct digest_chain *c, const char *text);

/* Returns NULL if the digest is empty or unknown. */
const char *digest_chain_text(const struct digest_chain *c);

/* Plain data: rank 0 reads it and broadcasts the struct. */
struct run_state {
    int64_t step;          /* number of updates done */
    int64_t schedule_step; /* position in the plan below */
    int64_t epoch, epoch_images, images_seen;
    double train_seconds; /* time spent in all these steps; NAN: an older checkpoint without it */
    double epochs_done;   /* informative; a resumed run computes it from the members above */
    int64_t global_batch, world_size, threads, steps_per_epoch, train_images;
    double peak_lr, lr; /* of the plan; of the last step */
    int64_t bad_images;
    bool
        has_statistics; /* when read: the statistics of each rank are stored beside their average */
    double run_started; /* Unix time of the first run_start; time to train includes interruptions */
    bool evaluated, target_reached;
    int64_t evaluated_at; /* step of the last evaluation */
    double ttt_seconds;
    struct evaluation evaluation; /* last evaluation; seconds and ended are not stored */
    struct digest_chain losses, evaluations;
    struct monitor monitor;
    struct model_tuning tuning; /* algorithms of the convolutions, which affect the last bits */
};

/* Writes folder/state.json with the job keys that must not change, and the digests of all files
 * (common/digest.h). digests: those of files that other ranks wrote; others are added to it. */
int run_state_write(const struct run_state *s, const struct job_spec *spec, const char *folder,
                    json_t *digests, struct error *e);

/* Reads state.json and verifies the digests of all files. Returns 0, ERR_NOT_FOUND, ERR_CORRUPT
 * (names the file) or ERR_CONFLICT (belongs to another job; names the difference). */
int run_state_read(const char *folder, const struct job_spec *spec, struct run_state *s,
                   struct error *e);

/* Finds the checkpoint for --resume. from: a folder, or "latest" for the newest valid one in
 * run_dir/checkpoints; `warnings` then gets a string about each newer one. If there is no
 * checkpoint at all, path becomes "", with a warning; if none of them is valid, that is an
 * error. */
int run_state_find(const char *run_dir, const char *from, const struct job_spec *spec,
                   char path[PATH_MAX], struct run_state *state, json_t *warnings, struct error *e);
