/* What this process's TCP connections carry, MPI's among them: the gradients of a step on a slow
 * network move long before their sum is complete, and MPI does not say how far it is. */
#pragma once

#include <stdint.h>

/* Bytes that all open connections have sent, as acknowledged by their peers, and received; less
 * than before where one was closed since. Other transports (InfiniBand, shared memory) are not
 * seen. */
uint64_t traffic_tcp_bytes(void);
