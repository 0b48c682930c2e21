/* Durable writes of several threads in one commit. */
#pragma once

#include "daemon/store/sql.h"

/* Called once, on any thread; a failure undoes this write alone. */
typedef int sql_write(struct sql *c, void *context, struct error *e);

/* Durable when it returns. */
int sql_write_grouped(struct store *s, sql_write *write, void *context, struct error *e);
