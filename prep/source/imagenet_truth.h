/*
 * Which class each of ImageNet's 50,000 validation images is, and what the classes are called in
 * words, from any of the usual files beside the tars:
 *
 *   imagenet_2012_validation_synset_labels.txt   a synset a line, in the order of the images
 *                                                (what imagenet_to_gcs.py uses)
 *   synset_labels.txt                            the same, as it is often called
 *   LOC_val_solution.csv                         ILSVRC2012_val_00048981,n03995372 85 1 499 272
 *   ILSVRC2012_devkit_t12.tar.gz, or unpacked    data/ILSVRC2012_validation_ground_truth.txt: the
 *                                                ILSVRC2012_ID of an image a line, and
 * data/meta.mat: which synset that is, and its words
 *
 * Words come from LOC_synset_mapping.txt, synset_words.txt or imagenet_metadata.txt ("n01440764
 * tench, Tinca tinca", behind a space or a tab), else from meta.mat.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define SYNSET_BYTES 16 /* "n01440764" and a NUL, with room */

struct imagenet_words {
    char synset[SYNSET_BYTES];
    char *text;
};

struct imagenet_truth {
    char source[64];               /* the file the labels are from; "" if none was found */
    char (*synsets)[SYNSET_BYTES]; /* (images): of validation image i + 1; "": not told */
    int64_t images;
    size_t room, word_room;
    struct imagenet_words *words; /* (word_count), in no order */
    int word_count;
};

/* Looks in folder; finding nothing is no error. ERR_INVALID naming file and line; ERR_NOT_FOUND: a
 * ground truth without meta.mat. */
int imagenet_truth_read(const char *folder, struct imagenet_truth *t, struct error *e);
void imagenet_truth_free(struct imagenet_truth *t);

const char *imagenet_truth_text(const struct imagenet_truth *t, const char *synset); /* or NULL */
