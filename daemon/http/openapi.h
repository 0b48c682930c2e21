/* Generates the OpenAPI 3.1 document. Paths, parameters, roles and statuses come from the table of
 * routes; schemas of bodies and examples come from schema/api. */
#pragma once

#include <jansson.h>

json_t *openapi_document(void); /* a new reference */

/* The files of schema/api, embedded at build time; doc/how-to-add-a-route.md describes their
 * format. */
struct api_doc {
    const char *name, *text; /* name: file name without .json; NULL terminates the list */
};
extern const struct api_doc api_docs[];
