/* Restricts the addresses that notices may be sent to, because submitters must not make the daemon
 * call into a private network. The address actually connected to is checked, because a name may
 * resolve to a different one each time. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "common/error.h"

/* Returns whether the address is globally reachable according to the IANA registries (RFC 6890).
 * IPv6 addresses with an embedded IPv4 address (mapped, NAT64, 6to4) are judged by the latter. */
bool address_is_public(const struct sockaddr *address);

/* notify_allow: networks ("10.1.2.0/24"), addresses and hosts ("chat.internal:8443"), separated by
 * spaces; NULL: none. */
int address_list_check(const char *list, struct error *e); /* ERR_USAGE names the invalid entry */
bool address_is_allowed(const char *list, const struct sockaddr *address); /* by a listed network */
bool address_host_is_allowed(const char *list, const char *host, int port); /* by its name */

/* notify_mail_domains, separated by spaces; NULL: any. */
int address_domains_check(const char *list, struct error *e);
bool address_mail_is_allowed(const char *domains,
                             const char *to); /* true if `to` is not a mail address */
