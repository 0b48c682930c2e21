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
    struct config config;  /* a copy; public_url has no slash at its end */
    atomic_int references; /* own */
};

/* Reads the files and checks the values: what is wrong is named with its key or file. One reference
 * in *out. */
int notice_settings_load(const struct config *c, struct notice_settings **out, struct error *e);
void notice_settings_release(struct notice_settings *s); /* NULL is fine */
