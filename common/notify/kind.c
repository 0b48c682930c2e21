#include "common/notify/kind.h"

#include <string.h>

static const struct {
    const char *name, *when;
} kinds[NOTICE_KINDS] = {
    [NOTICE_SUCCEEDED] = {"succeeded",      "a job has succeeded"                                                  },
    [NOTICE_FAILED] = {"failed",         "a job has failed and is not restarted"                                },
    [NOTICE_CANCELLED] = {"cancelled",      "a job was cancelled"                                                  },
    [NOTICE_ATTEMPT_FAILED] =
        {"attempt_failed",
                          "an attempt of a job has failed, also one that is followed by a restart"                 },
    [NOTICE_TARGET_MET] = {"target_met",
                          "an evaluation of a job reaches eval.target_top1 for the first time"                     },
    [NOTICE_STRAGGLER] = {"straggler",      "a rank delays the others; once per attempt"                           },
    [NOTICE_STALLED] = {"stalled",        "an attempt makes no progress; once per attempt"                       },
    [NOTICE_NODE_DRAINED] =
        {"node_drained",   "a node is found unfit and drained, with the job on it if there is one"},
    [NOTICE_SWEEP_DONE] = {"sweep_done",     "a sweep has ended"                                                    },
    [NOTICE_TEST] = {"test",           "somebody asked for it by trainctl notify test"                        },
};
static const char *const formats[NOTICE_FORMATS] = {[NOTICE_JSON] = "json", [NOTICE_TEXT] = "text"};

const char *notice_kind_name(size_t kind)
{
    return kind < NOTICE_KINDS ? kinds[kind].name : NULL;
}

const char *notice_kind_when(size_t kind)
{
    return kind < NOTICE_KINDS ? kinds[kind].when : NULL;
}

enum notice_kind notice_kind_of(const char *name)
{
    size_t i = 0;

    while (i < NOTICE_KINDS && (!name || strcmp(name, kinds[i].name) != 0))
        i++;
    return (enum notice_kind)i;
}

const char *notice_format_name(size_t format)
{
    return format < NOTICE_FORMATS ? formats[format] : NULL;
}

enum notice_format notice_format_of(const char *name)
{
    size_t i = 0;

    while (i < NOTICE_FORMATS && (!name || strcmp(name, formats[i]) != 0))
        i++;
    return (enum notice_format)i;
}
