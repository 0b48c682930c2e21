#include "daemon/store/find/find.h"

#include <stdio.h>
#include <string.h>

static void find_states(unsigned states, char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (int state = 0; states && state < JOB_STATE_COUNT; state++)
        if (states & 1u << state)
            used += (size_t)snprintf(text + used, bytes - used, ",%s,",
                                     job_state_name((enum job_state)state));
}

void find_words_of(const struct store_job_filter *filter, struct find_words *w)
{
    const char *tags = filter->tags;

    find_states(filter->states, w->states, sizeof w->states);
    w->tag = w->tags = NULL;
    w->tag_count = 0;
    if (!tags)
        return;
    snprintf(w->tag_text, sizeof w->tag_text, "%.*s", (int)strcspn(tags, ","), tags);
    snprintf(w->tags_text, sizeof w->tags_text, ",%s,", tags);
    w->tag = w->tag_text;
    w->tags = w->tags_text;
    for (const char *at = w->tags_text; (at = strchr(at + 1, ','));)
        w->tag_count++;
}
