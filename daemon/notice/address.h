/* Which addresses a notice may go to: submitters must not make the daemon call into a network. What
 * counts is the address that is connected to, as a name may have another one each time. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "common/error.h"

/* Globally reachable by the IANA registries (RFC 6890). IPv6 addresses that hold an IPv4 one
 * (mapped, NAT64, 6to4) are judged by that. */
bool address_is_public(const struct sockaddr *address);

/* notify_allow: networks ("10.1.2.0/24"), addresses and hosts ("chat.internal:8443") with spaces
 * between; NULL: none. */
int address_list_check(const char *list, struct error *e); /* ERR_USAGE names the wrong word */
bool address_is_allowed(const char *list, const struct sockaddr *address);  /* by a network */
bool address_host_is_allowed(const char *list, const char *host, int port); /* by its name */

/* notify_mail_domains, with spaces between; NULL: any. */
int address_domains_check(const char *list, struct error *e);
bool address_mail_is_allowed(const char *domains, const char *to); /* true if to is no mail */
