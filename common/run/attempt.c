#include "common/run/attempt.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/file.h"
#include "common/xalloc.h"

static const char *const names[EVENT_TYPE_COUNT] = {
    [EVENT_RUN_START] = "run_start", [EVENT_GRADIENTS] = "gradients",
    [EVENT_STEP] = "step",           [EVENT_EVAL_PROGRESS] = "eval_progress",
    [EVENT_EVAL] = "eval",           [EVENT_CHECKPOINT] = "checkpoint",
    [EVENT_STRAGGLER] = "straggler", [EVENT_WARNING] = "warning",
    [EVENT_ENERGY] = "energy",       [EVENT_RUN_STOP] = "run_stop",
    [EVENT_FAILED] = "failed",       [EVENT_CONFUSION] = "confusion",
};

static const struct event_metric metrics[] = {
    {"loss",           "",         "training loss, mean over the global batch"            },
    {"lr",             "",         "learning rate of the step"                            },
    {"images_per_sec", "images/s", "throughput of all ranks"                              },
    {"step_ms",        "ms",       "time of the whole step"                               },
    {"data_ms",        "ms",       "time the engine waited for images"                    },
    {"forward_ms",     "ms",       "forward pass"                                         },
    {"backward_ms",    "ms",       "backward pass"                                        },
    {"comm_ms",        "ms",       "all-reduce time not overlapped with the backward pass"},
    {"optim_ms",       "ms",       "optimiser"                                            },
    {"grad_norm",      "",         "L2 norm of the averaged gradient"                     },
    {"slowest_rank",   "",         "rank with the longest step"                           },
    {"top1",           "",         "training accuracy, share of the global batch"         },
};

_Static_assert(sizeof metrics / sizeof metrics[0] <= EVENT_METRICS_MAX,
               "EVENT_METRICS_MAX is too small");

const char *event_type_name(enum event_type type)
{
    return (unsigned)type < EVENT_TYPE_COUNT ? names[type] : "unknown";
}

enum event_type event_type_of(const char *name)
{
    for (int i = 0; i < EVENT_TYPE_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            return (enum event_type)i;
    return EVENT_TYPE_COUNT;
}

const char *event_kind_at(size_t i)
{
    static const char *const own[] = {"state", "resume", "labels"};
    const size_t count = sizeof own / sizeof own[0];

    return i < count ? own[i] : i - count < EVENT_TYPE_COUNT ? names[i - count] : NULL;
}

const struct event_metric *event_metric_at(size_t i)
{
    return i < sizeof metrics / sizeof metrics[0] ? &metrics[i] : NULL;
}

int attempt_flag_write(const char *attempt_dir, const char *name, struct error *e)
{
    char path[PATH_MAX];

    return file_path(path, e, "%s/%s", attempt_dir, name) ? -ERR_INVALID
                                                          : file_write_atomic(path, "", 0, e);
}

bool attempt_flag_is_set(const char *attempt_dir, const char *name)
{
    char path[PATH_MAX];

    file_path(path, NULL, "%s/%s", attempt_dir, name);
    return access(path, F_OK) == 0;
}

bool attempt_file_is_filled(const char *attempt_dir, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    file_path(path, NULL, "%s/%s", attempt_dir, name);
    return stat(path, &st) == 0 && st.st_size > 0;
}

#define TAIL_BYTES (256 * 1024)

char *attempt_read_tail(const char *attempt_dir, const char *name)
{
    char path[PATH_MAX], *text = xcalloc(1, TAIL_BYTES + 1);
    struct stat st;
    int fd = file_path(path, NULL, "%s/%s", attempt_dir, name) ? -1 : file_open(path, NULL);

    if (fd >= 0 && fstat(fd, &st) == 0) {
        off_t from = st.st_size > TAIL_BYTES ? st.st_size - TAIL_BYTES : 0;
        ssize_t n = pread(fd, text, TAIL_BYTES, from);
        for (ssize_t i = 0; i < n; i++)
            text[i] = text[i] ? text[i] : ' ';
        text[n > 0 ? n : 0] = '\0';
        char *newline = from ? strchr(text, '\n') : NULL;
        if (newline)
            memmove(text, newline + 1, strlen(newline + 1) + 1);
    }
    if (fd >= 0)
        close(fd);
    return text;
}
