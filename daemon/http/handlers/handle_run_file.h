/* Files of a run directory: no name or symbolic link written by workers leads out of it. */
#pragma once

/* name: as "attempt-1/stdout.log". A descriptor of a file or folder, or -1 with errno: ENOENT,
 * ELOOP (symbolic link), EXDEV (".."). */
int run_file_open(const char *run_dir, const char *name);
