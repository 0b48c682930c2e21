/*
 * Whether this machine is fit to train: how fast its processor and memory are, its clock, free
 * memory and scratch, the versions of what a worker runs with, and the data sets. Without MPI, in
 * less than two seconds, for a prolog. What is fast enough is not judged here: the daemon compares
 * with what this machine did before and with others of its kind.
 */
#pragma once

#include <stdbool.h>

#define SELF_CHECK_DATA_MAX 4

struct self_check_options {
    bool json;           /* print one JSON object instead of a line a check */
    const char *scratch; /* a folder on this machine's own disk; NULL: none */
    const char *data[SELF_CHECK_DATA_MAX];
    int data_count;
    bool lines;        /* look at the data sets alone, and print a line each, for found */
    const char *found; /* a file with those lines, or "-": what somebody found who may see the data;
                          they are not opened here. NULL: none */
};

/* Exit statuses, those of train-prep stage: whose fault it is. */
enum {
    SELF_CHECK_FINE = 0,
    SELF_CHECK_NODE = 1,   /* this machine's */
    SELF_CHECK_DATA = 6,   /* the data's: likely the same on every machine */
    SELF_CHECK_SCRATCH = 7 /* this machine's scratch's */
};

/* Prints what was found; returns the exit status. */
int self_check(const struct self_check_options *options);
