/* A notice as a mail, handed to the system's sendmail command. */
#pragma once

#include "daemon/notice/notice_settings.h"
#include "daemon/notice/outbox.h"
#include "daemon/notice/post.h"

struct mail;

/* Starts the command. */
int mail_create(const struct outbox_notice *n, const struct notice_settings *settings,
                struct mail **out, struct error *e);
int mail_pidfd(const struct mail *m); /* readable when the command has ended */

/* true: it has ended, or was ended as it took too long, and *outcome is filled. Does not wait. */
bool mail_look(struct mail *m, struct post_outcome *outcome);
void mail_destroy(struct mail *m); /* ends the command if it still runs; NULL is fine */
