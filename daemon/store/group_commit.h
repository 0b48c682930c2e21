/* Group commit: durable writes of several threads share one commit. */
#pragma once

#include "daemon/store/sql.h"

/* Called once, on any thread. A failure undoes only this write. */
typedef int sql_write(struct sql *c, void *context, struct error *e);

/* Durable on return. */
int sql_write_grouped(struct store *s, sql_write *write, void *context, struct error *e);
