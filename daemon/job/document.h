#pragma once

#include <jansson.h>

char *job_json_text(json_t *value); /* steals the reference; the caller frees the text */
