/* Target of a notice: "https://host/path", "http://..." or "mailto:name@host" */
#pragma once

#include <stdbool.h>

#define NOTICE_TARGET_BYTES 1025 /* including the NUL */
#define NOTICE_HOST_BYTES   256

struct notice_target {
    enum { NOTICE_TARGET_HTTPS, NOTICE_TARGET_HTTP, NOTICE_TARGET_MAIL } kind;
    char host[NOTICE_HOST_BYTES]; /* in lower case, an IPv6 address without brackets; for mail the
                                     part after the "@" */
    int port;                     /* default 443 or 80; 0 for mail */
};

/* Returns false and sets *why if the target is invalid. Credentials are refused, because other
 * users may read job documents. */
bool notice_target_parse(const char *text, struct notice_target *target, const char **why);

/* A regular expression that also matches some targets that only notice_target_parse can reject */
#define NOTICE_TARGET_PATTERN                                                                      \
    "^(https?://[A-Za-z0-9._:\\[\\]-]+([/?][!$-;=?-Z_a-z~]*)?|"                                    \
    "mailto:[A-Za-z0-9._+][A-Za-z0-9._+-]*@[A-Za-z0-9][A-Za-z0-9.-]*)$"
