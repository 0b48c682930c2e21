/*
 * A short training for its speed, in a folder of its own that is removed afterwards. mpirun is
 * started by the daemon's launcher, so that what is measured is what a job would get.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "client/local.h"
#include "client/measure/bench.h"
#include "common/job/job_document.h"
#include "common/json.h"
#include "common/system/file.h"

static int bench_make_folder(const struct job_spec *spec, char dir[PATH_MAX - 64], struct error *e)
{
    char path[PATH_MAX];
    const char *tmp = getenv("TMPDIR");

    snprintf(dir, PATH_MAX - 64, "%s/trainctl-bench-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return error_set_errno(e, errno, "cannot make the folder %s", dir);
    snprintf(path, sizeof path, "%s/job.json", dir);
    json_t *job = job_spec_to_json(spec);
    int status = json_file_write(path, job, e);
    json_decref(job);
    return status;
}

int bench_run(const struct job_spec *spec, struct bench *bench, struct error *e)
{
    char dir[PATH_MAX - 64], events[PATH_MAX];
    int status = bench_make_folder(spec, dir, e);
    struct local l = {.spec = spec,
                      .run_dir = dir,
                      .attempt = 1,
                      .benchmarks = true,
                      .job = json_pack("{s:n}", "reason")};
    struct stream_event event;

    if (!status)
        status = local_start(&l, e);
    while (!status && !l.ended)
        local_next(&l, -1, -1, &event);
    snprintf(events, sizeof events, "%s/events.jsonl", l.attempt_dir);
    if (!status && l.stops)
        status = error_set(e, ERR_INTERRUPTED, "interrupted");
    else if (!status && l.code)
        status = error_set(e, ERR_INTERNAL, "the workers failed: %s",
                           json_get_text(l.job, "reason", ""));
    else if (!status)
        status = bench_read(events, spec, bench, e);
    if (l.code && !l.stops && !l.explained)
        local_append_log(&l, e);
    local_clear(&l);
    file_remove_tree(dir, NULL);
    return status;
}
