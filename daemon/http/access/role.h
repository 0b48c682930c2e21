/* Roles. Tokens, openapi.json (x-role, x-roles) and the first table of doc/security.md are based on
 * this table; the table of routes lists the role that each route requires. */
#pragma once

#include <stddef.h>

enum role { ROLE_ANYONE, ROLE_READ, ROLE_SUBMIT, ROLE_OPERATOR, ROLE_NODE, ROLE_ADMIN, ROLES };

#define RIGHT(role) (1u << (role))

struct role_info {
    const char *name;
    unsigned rights; /* RIGHT() bits of the role and of those it includes */
    const char *may; /* description of rights beyond routes; NULL: none */
};
const struct role_info *role_at(enum role role);

int role_of_token(const char *name); /* returns a role that tokens can have; -1: no such role */

/* Formats as "read, submit, operator, node or admin". */
void role_list_of_tokens(char *text, size_t bytes);
