/* A time limit as Slurm writes it (sbatch(1), --time): minutes, minutes:seconds,
 * hours:minutes:seconds, days-hours, days-hours:minutes, days-hours:minutes:seconds. */
#pragma once

/* Seconds; NAN for NULL (no limit) and for what is none of these forms, or no time at all. */
double time_limit_seconds(const char *text);
