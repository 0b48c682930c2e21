/*
 * state.json of a checkpoint: where a run is, and what must be the same for another to go on from
 * there.
 *
 * A place in the data is an epoch and the images of it that were used, not a step: so a run goes on
 * where it was even if its global batch is another. Steps count updates of the weights and only
 * grow; schedule_step counts in the plan's steps, from which the learning rate follows. The two
 * differ once the global batch changed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/job/job_spec.h"
#include "worker/model/tune.h"
#include "worker/provenance/chain.h"

struct evaluation {
    double top1, top5; /* fractions of all images */
    double loss;       /* mean cross entropy, without label smoothing */
    int64_t images;    /* counted, images that do not decode included (as wrong) */
    double seconds;
    double ended; /* monotonic clock, when the numbers were there; not kept, as seconds */
    bool has_raw; /* the above is of the averaged weights, this of those that are trained */
    double raw_top1, raw_top5, raw_loss;
};

/* Plain numbers: rank 0 reads them, one broadcast shares them. */
struct run_state {
    int64_t step;          /* updates done */
    int64_t schedule_step; /* of the plan below */
    int64_t epoch, epoch_images, images_seen;
    double train_seconds; /* of all these steps; NAN: an older checkpoint, which does not tell */
    double epochs_done;   /* written for people; a resumed run counts it from the above */
    int64_t global_batch, world_size, threads, steps_per_epoch, train_images;
    double peak_lr, lr; /* of the plan; of the last step */
    int64_t bad_images;
    bool has_statistics; /* of each rank, beside their average; of a checkpoint that was read */
    double run_started;  /* Unix time of the first run_start: time to train never pauses */
    bool evaluated, target_reached;
    int64_t evaluated_at; /* step */
    double ttt_seconds;
    struct evaluation evaluation; /* the last one; seconds and ended are not kept */
    struct chain losses, evaluations;
    struct model_tuning tuning; /* which convolutions are computed how decides the last bits */
};

/* Writes folder/state.json, with the job's keys that a run cannot change on its way and the digests
 * (common/digest.h) of the folder's other files and of itself. In digests, those of what rank 0 did
 * not write; the others are added. */
int run_state_write(const struct run_state *s, const struct job_spec *spec, const char *folder,
                    json_t *digests, struct error *e);

/* Checks every byte of the folder's files against the digests. ERR_NOT_FOUND, ERR_CORRUPT (not
 * whole: names the file), ERR_CONFLICT (of another job: names what differs). */
int run_state_read(const char *folder, const struct job_spec *spec, struct run_state *s,
                   struct error *e);
