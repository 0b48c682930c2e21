/* Sends a notice by mail, with the system's sendmail command. */
#pragma once

#include "daemon/notice/notice_settings.h"
#include "daemon/notice/outbox.h"
#include "daemon/notice/post.h"

struct mail;

/* Starts the command. */
int mail_create(const struct outbox_notice *n, const struct notice_settings *settings,
                struct mail **out, struct error *e);
int mail_pidfd(const struct mail *m); /* becomes readable when the command has ended */

/* Returns true with *outcome once the command has ended or was killed for its time. Does not
 * block. */
bool mail_look(struct mail *m, struct post_outcome *outcome);
void mail_destroy(struct mail *m); /* kills the command if it is still running; NULL-safe */
