#include "worker/job_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job_spec.h"
#include "common/json.h"
#include "common/preset.h"

/* A value is a line's rest as it is: the strings of a job document have no control characters. */
static void print(const char *name, const char *value)
{
    printf("%s=%s\n", name, value ? value : "");
}

static const char *folder(const char *path)
{
    return job_spec_is_synthetic(path) ? NULL : path;
}

int job_settings_print(const char *job_file)
{
    struct problems problems = {0};
    struct error e = {0};
    json_t *document = json_document_load(job_file, &e);
    struct job_spec *spec =
        document ? job_spec_parse(document, preset_lookup, NULL, &problems, NULL) : NULL;

    json_decref(document);
    if (spec) {
        print("data_train", folder(spec->data.train));
        print("data_eval", folder(spec->data.eval));
        print("locality", spec->data.locality == JOB_LOCALITY_NODE ? "node" : "global");
        printf("nodes=%lld\n", (long long)spec->cluster.nodes);
        printf("threads=%lld\n", (long long)spec->cluster.threads_per_worker);
        print("interface", spec->cluster.interface);
    } else if (problems.count) {
        fprintf(stderr, "train-worker: %s: %s: %s\n", job_file, problems.items[0].pointer,
                problems.items[0].message);
    } else {
        fprintf(stderr, "train-worker: %s\n", e.text);
    }
    problems_clear(&problems);
    int status = spec ? 0 : 2;
    job_spec_destroy(spec);
    return status;
}
