/* What the files of `trainctl doctor` share. */
#ifndef TRAIND_CLIENT_CMD_ADMIN_DOCTOR_H
#define TRAIND_CLIENT_CMD_ADMIN_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* What a program prints, cut to bytes; false where it cannot be run or says nothing. */
bool doctor_output(char *const *argv, char *text, size_t bytes);

/* doctor_slurm.c: what of the set-up on Slurm is missing, as this machine sees it. */
void doctor_slurm(json_t *list);

#endif
