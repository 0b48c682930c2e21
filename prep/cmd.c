#include "prep/cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int64_t cmd_number(struct argp_state *state, const char *option, const char *text, int64_t least,
                   int64_t most)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < least || value > most)
        argp_error(state, "%s %s: expected a whole number from %lld to %lld", option, text,
                   (long long)least, (long long)most);
    return value;
}

enum dataset_role cmd_role(struct argp_state *state, const char *text)
{
    if (strcmp(text, "train") != 0 && strcmp(text, "validation") != 0)
        argp_error(state, "--role %s: expected train or validation", text);
    return strcmp(text, "train") == 0 ? DATASET_TRAIN : DATASET_EVAL;
}
