/* Formats numbers for people. Each function writes at most `bytes` bytes to text and returns it;
 * NAN is "-". */
#pragma once

#include <stddef.h>

#define FORMAT_BYTES 48 /* enough for each of them */

char *format_duration(char *text, size_t bytes,
                      double seconds); /* "4.2 s", "3 min 20 s", "1 h 52 min" */
char *format_rate(char *text, size_t bytes,
                  double images_per_sec); /* "212 images/s", "16.4k images/s" */
char *format_percent(char *text, size_t bytes, double fraction); /* "86.31 %" */
char *format_number(char *text, size_t bytes, double value);    /* 4 significant digits: "0.8123" */
char *format_count(char *text, size_t bytes, long long count);  /* "1,281,167" */
char *format_size(char *text, size_t bytes, double size_bytes); /* "1.6 GiB" */
char *format_date(char *text, size_t bytes,
                  double unix_time);                        /* local time: "2026-11-21 13:15:02" */
char *format_ago(char *text, size_t bytes, double seconds); /* "just now", "3 min ago" */
