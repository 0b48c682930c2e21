/*
 * state.json of a checkpoint: the position of a run, and what must be unchanged to resume it.
 *
 * The position in the data is an epoch and the number of its images used, so that it remains valid
 * with another global batch. Steps count updates of the weights; schedule_step counts steps of the
 * plan, which determine the learning rate. The two differ once the global batch has changed.
 */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/digest.h"
#include "common/error.h"
#include "common/job/job_spec.h"
#include "worker/model/autotune.h"

struct evaluation {
    double top1, top5; /* fractions of all images */
    double loss;       /* mean cross entropy, without label smoothing */
    int64_t images;    /* including those that do not decode, which count as wrong */
    double seconds;
    double ended; /* monotonic clock; not stored, nor is `seconds` */
    bool has_raw; /* the above is of the averaged weights, the below of the trained ones */
    double raw_top1, raw_top5, raw_loss;
};

/* Digest of a sequence of numbers, of the previous digest and the new numbers each time, so that a
 * resumed run ends with the same one. "": empty; CHAIN_UNKNOWN: resumed without it. */
struct digest_chain {
    char hex[DIGEST_BYTES];
};
#define CHAIN_UNKNOWN "?"

/* Adds numbers by their bits. CHAIN_UNKNOWN stays so. */
void digest_chain_add(struct digest_chain *c, const double *numbers, int count);

/* text: from a checkpoint; NULL: it has none. */
void digest_chain_resume(struct digest_chain *c, const char *text);

/* NULL if empty or unknown. */
const char *digest_chain_text(const struct digest_chain *c);

/* Plain values: rank 0 reads them and broadcasts the struct. */
struct run_state {
    int64_t step;          /* updates done */
    int64_t schedule_step; /* of the plan below */
    int64_t epoch, epoch_images, images_seen;
    double train_seconds; /* of all these steps; NAN: not in older checkpoints */
    double epochs_done;   /* for people; a resumed run computes it from the above */
    int64_t global_batch, world_size, threads, steps_per_epoch, train_images;
    double peak_lr, lr; /* of the plan; of the last step */
    int64_t bad_images;
    bool has_statistics; /* when read: each rank's are stored beside their average */
    double run_started;  /* Unix time of the first run_start: time to train never pauses */
    bool evaluated, target_reached;
    int64_t evaluated_at; /* step */
    double ttt_seconds;
    struct evaluation evaluation; /* the last one; seconds and ended are not stored */
    struct digest_chain losses, evaluations;
    struct model_tuning tuning; /* the algorithms of the convolutions decide the last bits */
};

/* Writes folder/state.json with the job's immutable keys and the files' digests (common/digest.h).
 * digests: those of the files that rank 0 did not write; the others are added to it. */
int run_state_write(const struct run_state *s, const struct job_spec *spec, const char *folder,
                    json_t *digests, struct error *e);

/* Verifies the digests of all files. ERR_NOT_FOUND, ERR_CORRUPT (names the file), ERR_CONFLICT
 * (another job's; names the difference). */
int run_state_read(const char *folder, const struct job_spec *spec, struct run_state *s,
                   struct error *e);

/* For --resume. from: a folder, or "latest" for the newest valid one in run_dir/checkpoints, with a
 * warning (string) about each newer one. Without any checkpoint path becomes "", with a warning; if
 * there are some but none is valid, that is an error. */
int run_state_find(const char *run_dir, const char *from, const struct job_spec *spec,
                   char path[PATH_MAX], struct run_state *state, json_t *warnings, struct error *e);
