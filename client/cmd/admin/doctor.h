/* What the files of `trainctl doctor` share. */
#pragma once

#include <jansson.h>

/* doctor_slurm.c: what of the set-up on Slurm is missing, as this machine sees it. */
void doctor_slurm(json_t *list);
