/* What notices need of traind.conf and the files that it names: a snapshot that is never changed,
 * replaced as a whole when the settings are read again. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "daemon/config.h"
#include "daemon/notice/rules.h"

struct notice_settings {
    struct notice_admin_rules rules;
    struct notice_secrets secrets;
    char *allow;      /* as daemon/notice/send/address.h reads it; NULL: public addresses alone */
    char *proxy;      /* NULL: none */
    char *ca_file;    /* NULL: the system's */
    char *sendmail;   /* the program */
    char *from;       /* NULL: as sendmail chooses */
    char *domains;    /* of mail, but for the administrator's rules; NULL: any */
    char *public_url; /* without a slash at its end; NULL: notices have no links */
    int64_t redirects;
    int64_t retry_seconds; /* since it happened: later failures are final */
    int64_t keep_days;     /* of one that is done; 0: for ever */
    atomic_int references; /* own */
};

/* Reads the files and checks the values: what is wrong is named with its key or file. One reference
 * in *out. */
int notice_settings_load(const struct config *c, struct notice_settings **out, struct error *e);
void notice_settings_release(struct notice_settings *s); /* NULL is fine */
