#pragma once

#include <sys/types.h>

#include "common/error.h"

/* Creates the folder and sets the umask. Its mode becomes 0700, or 0710 with this group ((gid_t)-1:
 * none) if the unix socket is in it, unless it also contains files of others. */
int state_folder_prepare(const char *path, const char *socket, gid_t socket_group, struct error *e);

/* Locks the folder for one daemon until *fd is closed. *fd may be open after an error. */
int state_folder_lock(const char *folder, int *fd, struct error *e);

/* Writes the file "listen", which contains the address of the running daemon. */
int state_folder_write_url(const char *folder, const char *url, struct error *e);
void state_folder_remove_url(const char *folder);
