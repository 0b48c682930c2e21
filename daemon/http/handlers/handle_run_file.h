/* Opens files of a run directory, and files for answers. No name or symbolic link written by
 * workers can lead outside it. */
#pragma once

#include "daemon/http/routes.h"

/* name: for example "attempt-1/stdout.log". Returns a descriptor of a file or folder, or -1 with
 * errno: ENOENT, ELOOP (symbolic link), EXDEV (".."). */
int run_file_open(const char *run_dir, const char *name);

/* Creates an unlinked file in the state folder, so that nothing is left over. what: for messages,
 * for example "the archive". Returns a descriptor, or an error of error_set_errno. */
int run_file_nameless(const struct request *q, const char *what, struct error *e);
