/* Files of a run directory, which its workers write: opened so that no name and no symbolic link
 * leads out of it. */
#pragma once

/* name: relative to run_dir, as "attempt-1/stdout.log". A descriptor of a regular file or a folder
 * for reading, or -1 with errno: ENOENT, ELOOP (a symbolic link on the way), EXDEV (".."). */
int run_file_open(const char *run_dir, const char *name);
