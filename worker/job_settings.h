/* What the scripts of a Slurm node need to know of a job: etc/slurm/. */
#pragma once

/* Prints a line each, name=value without quotes, to be read and never to be evaluated: data_train,
 * data_eval (empty for none or "synthetic"), locality, nodes, threads (0: cores / workers),
 * interface. Returns the exit status; what is wrong goes to stderr. */
int job_settings_print(const char *job_file);

/* Prints the options of mpirun that place the job's workers on this machine, for a batch script:
 * "--map-by numa:PE=22 --bind-to core". sys: NULL, or a copy of another machine's /sys. Returns the
 * exit status; what does not fit goes to stderr. */
int job_settings_place(const char *job_file, const char *sys);
