/* Use of this machine per user, for GET /metrics. */
#pragma once

#include <stdio.h>

#include "daemon/http/routes.h"

int usage_print(const struct request *q, FILE *out, struct error *e);
