/* A notice in words for people: of chat messages and mails. */
#ifndef TRAIND_DAEMON_NOTICE_TEXT_H
#define TRAIND_DAEMON_NOTICE_TEXT_H

#include <jansson.h>

/* "Job 12 (rn50) has failed: reason", then lines with its result, the last of its curve and the
 * link (NULL: none). body: as body.h makes it. The caller frees it; NULL: without memory. */
char *text_of_notice(const json_t *body, const char *link);

#endif
