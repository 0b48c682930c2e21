/* What Slurm answers: squeue --json gives a list of jobs, here as an array. */
#include <string.h>

#include "daemon/launch/slurm_reply.h"
#include "tests/fuzz/fuzz.h"

static void reply_judge(const json_t *jobs, const struct slurm_reply *r)
{
    char text[512];

    FUZZ_CHECK(r->name && r->state && r->reason && r->partition && r->nodes, "a text is missing");
    int64_t ahead = slurm_reply_ahead(jobs, r);
    FUZZ_CHECK(ahead >= 0 && (size_t)ahead <= json_array_size(jobs), "%lld jobs ahead",
               (long long)ahead);
    memset(text, 'x', sizeof text);
    slurm_reply_waiting(r, ahead, text, sizeof text);
    FUZZ_CHECK(strnlen(text, sizeof text) < sizeof text, "a text without an end");
    slurm_state_words(r->state);
}

int fuzz_slurm(const uint8_t *data, size_t bytes)
{
    json_t *jobs = json_loadb((const char *)data, bytes, 0, NULL), *job;
    struct slurm_reply reply;
    size_t i;

    json_array_foreach (jobs, i, job)
        if (slurm_reply_read(job, &reply))
            reply_judge(jobs, &reply);
    json_decref(jobs);
    return 0;
}
