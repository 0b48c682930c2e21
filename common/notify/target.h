/* Where a notice goes: "https://host/path", "http://..." or "mailto:name@host". */
#pragma once

#include <stdbool.h>

#define NOTICE_TARGET_BYTES 1025 /* with its NUL */
#define NOTICE_HOST_BYTES   256

struct notice_target {
    enum { NOTICE_TARGET_HTTPS, NOTICE_TARGET_HTTP, NOTICE_TARGET_MAIL } kind;
    char host[NOTICE_HOST_BYTES]; /* as it stands there in lower case, an IPv6 address without its
                                     brackets; of a mail what is behind the "@" */
    int port;                     /* 443, 80 where none is given; 0: of a mail */
};

/* false: *why says what is wrong. Credentials are refused, as others may read job documents. */
bool notice_target_parse(const char *text, struct notice_target *target, const char **why);

/* The same as a regular expression, which lets through what only the function can tell. */
#define NOTICE_TARGET_PATTERN                                                                      \
    "^(https?://[A-Za-z0-9._:\\[\\]-]+([/?][!$-;=?-Z_a-z~]*)?|"                                    \
    "mailto:[A-Za-z0-9._+][A-Za-z0-9._+-]*@[A-Za-z0-9][A-Za-z0-9.-]*)$"
