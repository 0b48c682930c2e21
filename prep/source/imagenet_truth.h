/*
 * The classes of ImageNet's 50,000 validation images, and descriptions of the classes, from any of
 * the usual files beside the tars:
 *
 *   imagenet_2012_validation_synset_labels.txt   a synset per line, in the order of the images
 *                                                (used by imagenet_to_gcs.py)
 *   synset_labels.txt                            another common name of it
 *   LOC_val_solution.csv                         ILSVRC2012_val_00048981,n03995372 85 1 499 272
 *   ILSVRC2012_devkit_t12.tar.gz, or unpacked    data/ILSVRC2012_validation_ground_truth.txt: the
 *                                                ILSVRC2012_ID of an image per line, and
 *                                                data/meta.mat: synset and description of an id
 *
 * Descriptions come from LOC_synset_mapping.txt, synset_words.txt or imagenet_metadata.txt
 * ("n01440764 tench, Tinca tinca", separated by a space or a tab), or else from meta.mat.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define SYNSET_BYTES 16 /* "n01440764" and a NUL, with spare bytes */

struct imagenet_words {
    char synset[SYNSET_BYTES];
    char *text;
};

struct imagenet_truth {
    char source[64];               /* name of the file with the labels; "" if none was found */
    char (*synsets)[SYNSET_BYTES]; /* (images): of validation image i + 1; "": unknown */
    int64_t images;
    size_t capacity, word_room;
    struct imagenet_words *words; /* (word_count), unsorted */
    int word_count;
};

/* Reads the files in a folder; it is no error if there are none. Returns ERR_INVALID with file and
 * line, or ERR_NOT_FOUND for a ground truth without meta.mat. */
int imagenet_truth_read(const char *folder, struct imagenet_truth *t, struct error *e);
void imagenet_truth_free(struct imagenet_truth *t);

const char *imagenet_truth_text(const struct imagenet_truth *t,
                                const char *synset); /* NULL: there is none */
