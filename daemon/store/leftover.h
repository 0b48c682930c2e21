/* Ended jobs whose run left something that could not be removed yet (job/dir/trim.h), for the next
 * daemon too. */
#ifndef TRAIND_DAEMON_STORE_LEFTOVER_H
#define TRAIND_DAEMON_STORE_LEFTOVER_H

#include "daemon/store/store.h"

/* left: something is; else nothing any more. A job that was removed has nothing. */
int store_leftover_set(struct store *s, int64_t job_id, bool left, struct error *e);

/* At most `most` of their ids. */
int store_leftover_list(struct store *s, int64_t *ids, size_t most, size_t *count, struct error *e);

#endif
