/* the files of schema/api as they were at the build: what the routes take and answer, as openapi.c
 * reads it. Their form is told in doc/how-to-add-a-route.md. */
#pragma once

#include <stddef.h>

struct api_doc {
    const char *name, *text; /* of the file, without .json; NULL behind the last */
};
extern const struct api_doc api_docs[];
