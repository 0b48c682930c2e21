/* Settings of a job for the scripts of a Slurm node: etc/slurm/. */
#pragma once

/* Prints lines name=value, unquoted, not for evaluation: data_train, data_eval (empty for none
 * or "synthetic"), locality, nodes, threads (0: cores / workers), interface. Returns the exit
 * status. */
int job_settings_print(const char *job_file);

/* Prints mpirun's options for placing the job's workers on this machine: "--map-by numa:PE=22
 * --bind-to core". sys: NULL, or a copy of another machine's /sys. Returns the exit status. */
int job_settings_place(const char *job_file, const char *sys);
