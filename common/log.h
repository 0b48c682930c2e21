/* Writes log lines to stderr: "2026-11-21T13:15:02.123Z warning: message", with the name set by
 * log_set_name. Thread-safe, one write per line. Untrusted text is escaped (text.h). */
#pragma once

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

enum log_format { LOG_TEXT, LOG_JSON };

/* JSON lines look like {"t": "2026-11-21T13:15:02.123Z", "level": "warning", "message": "text"}. */
void log_set_format(enum log_format format);
void log_set_level(enum log_level max);
void log_set_name(const char *name); /* copied; NULL: no name */

void log_at(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_at(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_at(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)
