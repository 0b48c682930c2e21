/*
 * The characters that strings of a job document may contain. Each string in the options table
 * (job_options.c) has a kind, checked wherever a document comes from: submission, sweep, resume,
 * clone, trainctl bench.
 *
 * Some strings end up in a shell: Open MPI's launcher puts the values of --mca between double
 * quotes into the remote user's command line, and Slurm's options are in a batch script. So the
 * kinds that reach a command have no character that any shell treats as special, even in quotes.
 */
#pragma once

#include <stdbool.h>

enum job_text {
    JOB_TEXT_NONE,  /* not a row of strings */
    JOB_TEXT_TITLE, /* for people; never part of a command or a path */
    JOB_TEXT_NOTE,  /* likewise, of several lines */
    JOB_TEXT_TAG,   /* a word for people; never part of a command or a path */
    JOB_TEXT_PATH,  /* of a file or folder that traind's programs open; never part of a command */
    JOB_TEXT_FILE,  /* a file's name without a folder */
    JOB_TEXT_HOST,  /* name or name:slots, or a list of them, see common/system/host.h */
    JOB_TEXT_INTERFACE, /* "eth0" or "10.0.0.0/24" */
    JOB_TEXT_NAMES,     /* of things in Slurm, with commas between them */
    JOB_TEXT_FEATURES,  /* of Slurm's nodes, with its operators */
    JOB_TEXT_TIME,      /* see time_limit_seconds */
    JOB_TEXT_ARGUMENT,  /* of mpirun */
    JOB_TEXT_VARIABLE,  /* the name of an environment variable */
    JOB_TEXT_SETTING,   /* its value */
    JOB_TEXT_PREFIX,    /* the folder that a program was installed to */
    JOB_TEXT_TILES,     /* Winograd's of convolutions, as worker/model/autotune.h writes them */
    /* not of a row: values of --mca for users who are not administrators */
    JOB_TEXT_WORDS,    /* "tcp,self" */
    JOB_TEXT_NETWORKS, /* "eth0,10.0.0.0/24" */
    JOB_TEXT_KINDS
};

bool job_text_right(enum job_text kind, const char *text);

/* The allowed characters ("letters, digits, hyphens and dots"); what a whole value must be. */
const char *job_text_letters(enum job_text kind);
const char *job_text_expects(enum job_text kind);

/* A regular expression for the JSON Schema, which accepts what only a function can reject (a subnet
 * of 300.0.0.0/99). NULL: anything but control characters (a note may have newlines and tabs). */
const char *job_text_pattern(enum job_text kind);

/* Slurm's time limits (sbatch(1), --time): minutes, minutes:seconds, hours:minutes:seconds,
 * days-hours, days-hours:minutes, days-hours:minutes:seconds. */

/* Seconds; NAN for NULL (no limit), another form, or zero. */
double time_limit_seconds(const char *text);
