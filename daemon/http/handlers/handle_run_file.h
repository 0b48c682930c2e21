/* Opens files of a run directory. No name or symbolic link written by workers can lead outside
 * it. */
#pragma once

/* name: for example "attempt-1/stdout.log". Returns a descriptor of a file or folder, or -1 with
 * errno: ENOENT, ELOOP (symbolic link), EXDEV (".."). */
int run_file_open(const char *run_dir, const char *name);
