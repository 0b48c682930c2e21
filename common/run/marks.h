/*
 * Files in an attempt's folder by which a daemon tells the next one, a batch script, and ranks that
 * were not there yet when it sent them a signal, why the attempt is to end.
 */
#pragma once

#include <stdbool.h>

#include "common/error.h"

#define MARK_CANCEL "cancel-requested"
#define MARK_LIMIT  "time-limit-reached"

int mark_write(const char *attempt_dir, const char *name, struct error *e);
bool mark_is_there(const char *attempt_dir, const char *name);

/* Likewise of any file, which must not be empty. */
bool mark_is_filled(const char *attempt_dir, const char *name);
