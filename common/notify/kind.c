#include "common/notify/kind.h"

#include <string.h>

static const char *const kinds[NOTICE_KINDS] = {
    [NOTICE_SUCCEEDED] = "succeeded",
    [NOTICE_FAILED] = "failed", /* and is not restarted */
    [NOTICE_CANCELLED] = "cancelled",
    [NOTICE_ATTEMPT_FAILED] = "attempt_failed", /* also one that is followed by a restart */
    [NOTICE_TARGET_MET] = "target_met",         /* eval.target_top1, for the first time */
    [NOTICE_STRAGGLER] = "straggler",           /* once per attempt */
    [NOTICE_STALLED] = "stalled",               /* likewise */
    [NOTICE_NODE_DRAINED] = "node_drained",     /* with the job on it if there is one */
    [NOTICE_SWEEP_DONE] = "sweep_done",
    [NOTICE_TEST] = "test", /* by trainctl notify test */
};
const char *const notice_format_words[NOTICE_FORMATS + 1] = {
    [NOTICE_JSON] = "json", [NOTICE_TEXT] = "text"};

const char *notice_kind_name(size_t kind)
{
    return kind < NOTICE_KINDS ? kinds[kind] : NULL;
}

enum notice_kind notice_kind_of(const char *name)
{
    size_t i = 0;

    while (i < NOTICE_KINDS && (!name || strcmp(name, kinds[i]) != 0))
        i++;
    return (enum notice_kind)i;
}

const char *notice_format_name(size_t format)
{
    return format < NOTICE_FORMATS ? notice_format_words[format] : NULL;
}

enum notice_format notice_format_of(const char *name)
{
    size_t i = 0;

    while (i < NOTICE_FORMATS && (!name || strcmp(name, notice_format_words[i]) != 0))
        i++;
    return (enum notice_format)i;
}
