/*
 * Roles. The table has the rights of tokens, openapi.json (x-role, x-roles) and the first table
 * of doc/security.md. The role that a route requires is in the table of routes.
 */
#pragma once

#include <stddef.h>

enum role { ROLE_ANYONE, ROLE_READ, ROLE_SUBMIT, ROLE_OPERATOR, ROLE_NODE, ROLE_ADMIN, ROLES };

#define RIGHT(role) (1u << (role))

struct role_info {
    const char *name;
    unsigned rights; /* RIGHT() bits: of the role and of those it includes */
    const char *may; /* rights beyond routes, in words; NULL: none */
};
const struct role_info *role_at(enum role role);

int role_of_token(const char *name); /* a role that tokens can have; -1: no such role */

/* "read, submit, operator, node or admin" */
void role_list_of_tokens(char *text, size_t bytes);
