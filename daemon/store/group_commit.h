/* Durable writes of several threads in one transaction. */
#pragma once

#include "daemon/store/sql.h"

/* Something to write inside the writer's transaction; a failure (negative, *e filled) undoes this
 * write alone. Called once, on any thread. */
typedef int sql_write(struct sql *c, void *context, struct error *e);

/* Durable when it returns, as sql_write_begin and sql_write_end, but what several threads bring at
 * a time shares one commit (group.c). */
int sql_write_grouped(struct store *s, sql_write *write, void *context, struct error *e);
