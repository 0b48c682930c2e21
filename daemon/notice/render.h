/* Renders a notice for sending. The caller frees the text; NULL: too large. */
#pragma once

#include "daemon/notice/notice_settings.h"
#include "daemon/notice/outbox.h"

#define RENDER_TOO_LARGE "the notice is too large to be sent"

/* Returns the body of a request: the notice in the API's form, or {"text": ...}. */
char *render_json(const struct outbox_notice *n, const struct notice_settings *settings);

/* Returns a mail with its headers, for the stdin of sendmail. */
char *render_mail(const struct outbox_notice *n, const struct notice_settings *settings);
