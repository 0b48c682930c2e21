#include "worker/optim/optimizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/model/weights.h"
#include "worker/optim/lars.h"
#include "worker/optim/sgd.h"

/* One of the two. */
struct optimizer {
    struct model *model;
    struct sgd *sgd;
    struct lars *lars;
};

static int create_sgd(struct optimizer *o, const struct job_spec *spec, struct error *e)
{
    struct sgd_config config = {
        .momentum = spec->optimizer.momentum,
        .nesterov = spec->optimizer.nesterov,
        .weight_decay = spec->optimizer.weight_decay,
        .decay_bn = spec->optimizer.decay_bn,
    };
    return sgd_create(o->model, &config, &o->sgd, e);
}

static int create_lars(struct optimizer *o, const struct job_spec *spec, struct error *e)
{
    struct lars_config config = {
        .momentum = spec->optimizer.momentum,
        .nesterov = spec->optimizer.nesterov,
        .weight_decay = spec->optimizer.weight_decay,
        .decay_bn = spec->optimizer.decay_bn,
        .eta = spec->optimizer.lars_eta,
        .momentum_correction = spec->optimizer.momentum_correction,
    };
    return lars_create(o->model, &config, &o->lars, e);
}

int optimizer_create(struct model *m, const struct job_spec *spec, struct optimizer **out,
                     struct error *e)
{
    struct optimizer *o = calloc(1, sizeof *o);

    if (!o)
        return error_set(e, ERR_NO_MEMORY, "no memory for the optimiser");
    o->model = m;
    int status = spec->optimizer.name == JOB_OPTIMIZER_LARS ? create_lars(o, spec, e)
                                                            : create_sgd(o, spec, e);
    if (status) {
        free(o);
        return status;
    }
    *out = o;
    return 0;
}

void optimizer_destroy(struct optimizer *o)
{
    if (!o)
        return;
    sgd_destroy(o->sgd);
    lars_destroy(o->lars);
    free(o);
}

double optimizer_step(struct optimizer *o, double lr)
{
    return o->lars ? lars_step(o->lars, lr) : sgd_step(o->sgd, lr);
}

void optimizer_set_last_rate(struct optimizer *o, double lr)
{
    if (o->lars)
        lars_set_last_rate(o->lars, lr);
}

float *optimizer_momentum(struct optimizer *o)
{
    return o->lars ? lars_momentum(o->lars) : sgd_velocity(o->sgd);
}

static const char *name_of(const struct optimizer *o)
{
    return o->lars ? "lars" : "sgd";
}

int optimizer_save(struct optimizer *o, int64_t step, const char *path, struct error *e)
{
    char steps[32];
    struct safetensors_meta meta[] = {
        {"format",    "pt"      },
        {"optimizer", name_of(o)},
        {"step",      steps     }
    };

    snprintf(steps, sizeof steps, "%lld", (long long)step);
    return model_save_buffer(o->model, optimizer_momentum(o), "momentum.", path, meta, 3, e);
}

static int check_name(const struct optimizer *o, const char *path, struct error *e)
{
    struct safetensors *file;
    int status = safetensors_open(path, &file, e);

    if (status)
        return status;
    const char *name = safetensors_metadata(file, "optimizer");
    if (!name || strcmp(name, name_of(o)))
        status = error_set(e, ERR_CONFLICT, "%s is the state of %s, the job's optimizer.name is %s",
                           path, name ? name : "an unknown optimiser", name_of(o));
    safetensors_close(file);
    return status;
}

int optimizer_load(struct optimizer *o, const char *path, struct error *e)
{
    int status = check_name(o, path, e);
    return status ? status
                  : model_load_buffer(o->model, optimizer_momentum(o), "momentum.", path, e);
}
