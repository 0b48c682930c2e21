/* What the scripts of a Slurm node need to know of a job: etc/slurm/. */
#ifndef TRAIND_WORKER_JOB_SETTINGS_H
#define TRAIND_WORKER_JOB_SETTINGS_H

/* Prints a line each, name=value without quotes, to be read and never to be evaluated: data_train,
 * data_eval (empty for none or "synthetic"), locality, nodes, threads (0: cores / workers),
 * interface. Returns the exit status; what is wrong goes to stderr. */
int job_settings_print(const char *job_file);

#endif
