/* What is sent of a notice: the bytes of a request's body, or of a mail. */
#pragma once

#include "daemon/notice/notice_settings.h"
#include "daemon/notice/outbox.h"

/* The notice as the API of notices has it, or {"text": ...}. The caller frees *text. */
int message_json(const struct outbox_notice *n, const struct notice_settings *settings, char **text,
                 struct error *e);

/* A mail with its headers, for the stdin of sendmail. */
int message_mail(const struct outbox_notice *n, const struct notice_settings *settings, char **text,
                 struct error *e);
