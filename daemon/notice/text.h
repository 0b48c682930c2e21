/* A notice in words for people: of chat messages and mails. */
#pragma once

#include <jansson.h>

/* "Job 12 (rn50) has failed: reason", then lines with its result, the last of its curve and the
 * link (NULL: none). body: as body.h makes it. The caller frees it; NULL: without memory. */
char *text_of_notice(const json_t *body, const char *link);

/* The same for a chat service, whose commands nobody gives by the name of a job: &, < and > as
 * entities (Slack: <!channel>, <URL|words>; Mattermost and Teams show them as characters too), and
 * an invisible space (U+200B) behind each @ (Mattermost, Discord: @all, @everyone) and in what
 * Markdown (Mattermost, Discord, Teams) makes a link of. The caller frees it; NULL: no memory. */
char *text_for_chat(const char *words);
