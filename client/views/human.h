/* Numbers as people say them. Each writes at most `bytes` bytes to text and returns text; NAN is
 * "-". */
#pragma once

#include <stddef.h>

#define HUMAN_BYTES 48 /* enough for any of these */

char *human_duration(char *text, size_t bytes,
                     double seconds); /* "4.2 s", "3 min 20 s", "1 h 52 min" */
char *human_rate(char *text, size_t bytes,
                 double images_per_sec); /* "212 images/s", "16.4k images/s" */
char *human_percent(char *text, size_t bytes, double fraction); /* "86.31 %" */
char *human_number(char *text, size_t bytes, double value);     /* 4 significant digits: "0.8123" */
char *human_count(char *text, size_t bytes, long long count);   /* "1,281,167" */
char *human_size(char *text, size_t bytes, double size_bytes);  /* "1.6 GiB" */
char *human_date(char *text, size_t bytes, double unix_time);   /* local: "2026-11-21 13:15:02" */
char *human_ago(char *text, size_t bytes, double seconds);      /* "just now", "3 min ago" */
