/* The state folder: made where it is missing, and closed to other users, with all in it. */
#pragma once

#include <sys/types.h>

#include "common/error.h"

/* The folder gets mode 0700; 0710 and this group ((gid_t)-1: none) where the unix socket lies in
 * it, so that the group's members reach the socket. What an older version left readable is closed
 * once. A folder that holds anything but traind's state, or is another user's, keeps its mode, and
 * the log says so: what is made in it is closed all the same, by the umask that is set here. */
int state_folder_prepare(const char *path, const char *socket, gid_t socket_group, struct error *e);

/* Takes the lock that only one daemon can hold on a folder; it lasts until *fd is closed. *fd may
 * be open after an error. ERR_CONFLICT names the holder's pid. */
int state_folder_lock(const char *folder, int *fd, struct error *e);

/* The file "listen", which names the address of the running daemon. */
int state_folder_write_url(const char *folder, const char *url, struct error *e);
void state_folder_remove_url(const char *folder);
