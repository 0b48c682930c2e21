/* Printing the API's JSON, and a job in full. */
#ifndef TRAIND_CLIENT_PRINT_H
#define TRAIND_CLIENT_PRINT_H

#include <jansson.h>

void print_json(const json_t *value); /* indented, with a final newline */

#endif
