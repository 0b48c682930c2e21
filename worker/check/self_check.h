/* Checks, without MPI and in under two seconds, whether this machine is fit to train. The daemon
 * judges the speeds, by earlier checks of this machine and others of its kind. */
#pragma once

#include <stdbool.h>

#define SELF_CHECK_DATA_MAX 4

struct self_check_options {
    bool json;           /* print one JSON object instead of text */
    const char *scratch; /* folder on a local disk, or NULL */
    const char *data[SELF_CHECK_DATA_MAX];
    int data_count;
    bool lines; /* check only the data sets, and print a line for each, as input for `found` */
    const char *found; /* file with those lines, or "-", from a user who may read the data; the data
                          are not opened here. NULL: none */
};

/* Exit statuses, as of train-prep stage */
enum {
    SELF_CHECK_FINE = 0,
    SELF_CHECK_NODE = 1,   /* the machine is unfit */
    SELF_CHECK_DATA = 6,   /* the data are wrong, probably on every machine */
    SELF_CHECK_SCRATCH = 7 /* this machine's scratch is */
};

/* Prints the results; returns the exit status. */
int self_check(const struct self_check_options *options);
