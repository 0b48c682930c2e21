#include "daemon/http/access/role.h"

#include <stdio.h>
#include <string.h>

#define ANYONE  RIGHT(ROLE_ANYONE)
#define READS   (ANYONE | RIGHT(ROLE_READ))
#define SUBMITS (READS | RIGHT(ROLE_SUBMIT))

static const struct role_info roles[ROLES] = {
    [ROLE_ANYONE] = {"anyone",   ANYONE,                         NULL                              },
    [ROLE_READ] = {"read",     READS,                          NULL                              },
    [ROLE_SUBMIT] = {"submit",   SUBMITS,
                     "change and remove their own jobs and sweeps, and those without an owner"     },
    [ROLE_OPERATOR] = {"operator", SUBMITS | RIGHT(ROLE_OPERATOR),
                     "change and remove the jobs and sweeps of others"                             },
    [ROLE_NODE] = {"node",     ANYONE | RIGHT(ROLE_NODE),      NULL                              },
    [ROLE_ADMIN] = {"admin",    RIGHT(ROLES) - 1,               "use any mpirun argument in a job"},
};

const struct role_info *role_at(enum role role)
{
    return &roles[role];
}

int role_of_token(const char *name)
{
    for (int i = ROLE_READ; name && i < ROLES; i++)
        if (strcmp(roles[i].name, name) == 0)
            return i;
    return -1;
}

void role_list_of_tokens(char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = ROLE_READ; i < ROLES && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s",
                                 i == ROLE_READ    ? ""
                                 : i == ROLE_ADMIN ? " or "
                                                   : ", ",
                                 roles[i].name);
}
