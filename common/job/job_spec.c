#include "common/job/job_spec.h"

#include <string.h>

bool job_spec_is_synthetic(const char *path)
{
    return path && strcmp(path, "synthetic") == 0;
}

bool job_spec_names_hosts(const struct job_spec *spec)
{
    return spec->cluster.launcher == JOB_LAUNCHER_LOCAL && spec->cluster.host_count > 0;
}

int64_t job_spec_world_size(const struct job_spec *spec)
{
    return spec->cluster.nodes * spec->cluster.workers_per_node;
}

int64_t job_spec_eval_size(const struct job_spec *spec)
{
    return spec->eval.has_image_size ? spec->eval.image_size : spec->model.image_size;
}
