/*
 * No core dumps of a process that holds secrets: tokens, the key of TLS. What it starts gets back
 * the limit that it was started with: workers hold none, and their users want their dumps. A change
 * of the hard limit would reach the programs as well, and prctl(PR_SET_DUMPABLE) would close
 * /proc/PID/exe to the daemon's own user.
 */
#pragma once

/* At the start of the program. */
void core_dump_forbid(void);

/* In a child behind fork(): async-signal-safe. Does nothing where nothing was forbidden. */
void core_dump_allow_again(void);
