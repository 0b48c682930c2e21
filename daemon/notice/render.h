/* The bytes that are sent of a notice; NULL: over the limit. The caller frees them. */
#pragma once

#include "daemon/notice/notice_settings.h"
#include "daemon/notice/outbox.h"

#define RENDER_TOO_LARGE "the notice is too large to be sent"

/* The body of a request: the notice as the API returns it, or {"text": ...}. */
char *render_json(const struct outbox_notice *n, const struct notice_settings *settings);

/* A mail with its headers, for the stdin of sendmail. */
char *render_mail(const struct outbox_notice *n, const struct notice_settings *settings);
