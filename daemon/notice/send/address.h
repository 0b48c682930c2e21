/*
 * Which addresses a notice may go to. Its target may be a submitter's, who must not make the daemon
 * call what only the inside of a network can reach. What counts is the address that is connected
 * to, not the text of a URL: a name may mean any address, and another one each time.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "common/error.h"

/* Globally reachable, as the IANA registries of special-purpose addresses say (RFC 6890). Not so:
 * loopback, private, link-local, shared (RFC 6598), multicast, documentation, reserved. IPv6
 * addresses that hold an IPv4 one (mapped, NAT64, 6to4) are judged by that. */
bool address_is_public(const struct sockaddr *address);

/* What notify_allow lists, with spaces between: networks ("10.1.2.0/24", "fd00::/8"), addresses,
 * and names of hosts, also with a port ("chat.internal:8443"). */
/* ERR_USAGE naming the word that is none. */
int address_list_check(const char *list, struct error *e);
/* In a network of the list (NULL: empty)? */
bool address_is_allowed(const char *list, const struct sockaddr *address);
/* The host by its name, whatever addresses it has. */
bool address_host_is_allowed(const char *list, const char *host, int port);

/* What notify_mail_domains lists, with spaces between; NULL: mail may go anywhere. */
int address_domains_check(const char *list, struct error *e);
/* True of a target that is no mail, too. */
bool address_mail_is_allowed(const char *domains, const char *to);
