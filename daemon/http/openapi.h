/*
 * The OpenAPI 3.1 document. The table of routes has the routes with their parameters, rights and
 * statuses; the files of schema/api have the shapes of bodies, with examples.
 */
#pragma once

#include <jansson.h>

json_t *openapi_document(void); /* a new reference */

/* The files of schema/api, embedded by the build; their form is in doc/how-to-add-a-route.md. */
struct api_doc {
    const char *name, *text; /* name: of the file, without .json; NULL ends the list */
};
extern const struct api_doc api_docs[];
