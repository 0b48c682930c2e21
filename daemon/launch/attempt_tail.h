#pragma once

/* The end of a file of the attempt as a string, from the first whole line on; "" if it cannot be
 * read, NULL without memory. The caller frees it. */
char *attempt_read_tail(const char *attempt_dir, const char *name);
