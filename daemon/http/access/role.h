/*
 * The roles: what a caller may do. One table, from which the rights of tokens, openapi.json
 * (x-role, x-roles) and the first table of doc/security.md come. What a route needs stands in the
 * table of routes.
 */
#pragma once

#include <stddef.h>

enum role { ROLE_ANYONE, ROLE_READ, ROLE_SUBMIT, ROLE_OPERATOR, ROLE_NODE, ROLE_ADMIN, ROLES };

#define RIGHT(role) (1u << (role))

struct role_info {
    const char *name;
    unsigned rights; /* RIGHT() bits: its own, and those of the roles it includes */
    const char *may; /* beyond the routes of its own, in words; NULL: nothing */
};
const struct role_info *role_at(enum role role);

int role_of_token(const char *name); /* enum role that a token may have; -1: none of that name */

/* "read, submit, operator, node or admin" */
void role_list_of_tokens(char *text, size_t bytes);
