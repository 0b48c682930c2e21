/*
 * The characters that strings of a job document may contain. Each string in the options table
 * (job_options.c) has a kind, which is checked wherever a document comes from: submission, sweep,
 * resume, clone, trainctl bench.
 *
 * Some strings become part of a shell command: Open MPI's launcher puts the values of --mca between
 * double quotes into the remote user's command line, and Slurm's options are in a batch script.
 * Therefore the kinds that reach a command exclude all characters that a shell treats as special,
 * even in quotes.
 */
#pragma once

#include <stdbool.h>

enum job_text {
    JOB_TEXT_NONE,      /* the key is not a string */
    JOB_TEXT_TITLE,     /* for people; never part of a command or path */
    JOB_TEXT_NOTE,      /* for people, several lines; never part of a command or path */
    JOB_TEXT_TAG,       /* word for people; never part of a command or path */
    JOB_TEXT_PATH,      /* file or folder that traind's programs open; never part of a command */
    JOB_TEXT_FILE,      /* file name without a folder */
    JOB_TEXT_HOST,      /* name or name:slots, or a list of them: common/system/host.h */
    JOB_TEXT_INTERFACE, /* for example "eth0" or "10.0.0.0/24" */
    JOB_TEXT_NAMES,     /* comma-separated names in Slurm */
    JOB_TEXT_FEATURES,  /* features of Slurm's nodes, with Slurm's operators */
    JOB_TEXT_TIME,      /* time limit, see time_limit_seconds */
    JOB_TEXT_ARGUMENT,  /* argument of mpirun */
    JOB_TEXT_VARIABLE,  /* name of an environment variable */
    JOB_TEXT_SETTING,   /* value of an environment variable */
    JOB_TEXT_PREFIX,    /* installation folder of a program */
    JOB_TEXT_TILES, /* Winograd's tiles by convolution, in the format of worker/model/tuning.h */
    /* Not kinds of keys: values of --mca for users who are not administrators */
    JOB_TEXT_WORDS,    /* for example "tcp,self" */
    JOB_TEXT_NETWORKS, /* for example "eth0,10.0.0.0/24" */
    JOB_TEXT_KINDS
};

bool job_text_right(enum job_text kind, const char *text);

/* Return the allowed characters ("letters, digits, hyphens and dots") and the valid values. */
const char *job_text_letters(enum job_text kind);
const char *job_text_expects(enum job_text kind);

/* Returns a regular expression for the JSON Schema. It also matches values that only a function
 * rejects (a subnet of 300.0.0.0/99). NULL: all but control characters (newlines in a note). */
const char *job_text_pattern(enum job_text kind);

/* Slurm's formats of time limits (sbatch(1), --time): minutes, minutes:seconds,
 * hours:minutes:seconds, days-hours, days-hours:minutes, days-hours:minutes:seconds. */

/* Returns the seconds; NAN for NULL (no limit), another format, or zero. */
double time_limit_seconds(const char *text);
