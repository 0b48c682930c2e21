/*
 * The build id of this program and of the shared libraries it runs with: the linker's digest of
 * what was compiled (ELF note NT_GNU_BUILD_ID), which tells two builds of one version apart.
 */
#pragma once

#define BUILD_ID_BYTES 65 /* hex digits and the NUL; longer ones are cut */

/* name: the file's name without its folder, "" of the program itself; hex: "" where it has none. */
typedef void build_id_visit(void *context, const char *name, const char *hex);
void build_id_each(build_id_visit *visit, void *context);

/* Of the program itself. Returns hex. */
char *build_id_own(char hex[BUILD_ID_BYTES]);
