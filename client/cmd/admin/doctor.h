/* What the files of `trainctl doctor` share. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* What a program prints, cut to bytes; false where it cannot be run or says nothing. */
bool doctor_output(char *const *argv, char *text, size_t bytes);

/* doctor_slurm.c: what of the set-up on Slurm is missing, as this machine sees it. */
void doctor_slurm(json_t *list);
