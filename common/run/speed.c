#include "common/run/speed.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/net/arch.h"
#include "common/system/host.h"
#include "common/system/file.h"
#include "common/xalloc.h"

#define CACHE_LINES       1000
#define CACHE_LIMIT_BYTES ((size_t)4 << 20)

char *speed_key(const struct job_spec *spec, int64_t threads, char key[SPEED_KEY_BYTES])
{
    char width[32] = "", frozen[32] = "";
    struct arch_shape shape = arch_shape_of(spec);

    if (spec->model.width != 1)
        snprintf(width, sizeof width, "-w%g", spec->model.width);
    if (shape.frozen > 0)
        snprintf(frozen, sizeof frozen, "-frozen%d", shape.frozen);
    snprintf(key, SPEED_KEY_BYTES, "%s-%s-%lld-%s-t%lld%s%s%s%s%s", spec->model.arch,
             spec->model.stem == JOB_STEM_SMALL ? "small" : "imagenet",
             (long long)spec->model.image_size,
             spec->precision == JOB_PRECISION_BF16 ? "bf16" : "fp32", (long long)threads,
             spec->cluster.smt ? "-smt" : "", spec->model.winograd ? "" : "-direct", width,
             spec->model.blur_pool ? "-blur" : "", frozen);
    return key;
}

static char model_name[SPEED_CPU_BYTES] = "unknown";

static void speed_read_model_name(void)
{
    char *name = host_cpuinfo("model name");

    if (name)
        snprintf(model_name, sizeof model_name, "%s", name);
    free(name);
}

/* Cached, because the kernel generates the file each time, and each submission needs it. */
char *speed_cpu(char cpu[SPEED_CPU_BYTES])
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, speed_read_model_name);
    snprintf(cpu, SPEED_CPU_BYTES, "%s", model_name);
    return cpu;
}

bool speed_cpu_has(const char *flag)
{
    char *flags = host_cpuinfo("flags"), *rest = NULL;
    bool has = false;

    for (char *word = flags ? strtok_r(flags, " ", &rest) : NULL; word && !has;
         word = strtok_r(NULL, " ", &rest))
        has = strcmp(word, flag) == 0;
    free(flags);
    return has;
}

json_t *speed_sample_to_json(const struct plan_sample *s)
{
    return json_pack("{s:o, s:o, s:o, s:I, s:I}", "image_seconds", json_number(s->image_seconds),
                     "update_seconds", json_number(s->update_seconds), "exchange_seconds",
                     json_number(s->exchange_seconds), "workers", (json_int_t)s->workers, "batch",
                     (json_int_t)s->batch);
}

static bool speed_within(double value, double low, double high)
{
    return value >= low && value <= high; /* false for NAN */
}

bool speed_sample_is_sound(const struct plan_sample *s)
{
    return speed_within(s->image_seconds, 1e-9, 86400) &&
           speed_within(s->update_seconds, 0, 86400) &&
           speed_within(s->exchange_seconds, 0, 86400) && s->workers >= 1 && s->workers <= 1024 &&
           s->batch >= 1 && s->batch <= 65536;
}

bool speed_sample_read(const json_t *json, struct plan_sample *s)
{
    *s = (struct plan_sample){
        .image_seconds = json_get_number(json, "image_seconds", NAN),
        .update_seconds = json_get_number(json, "update_seconds", NAN),
        .exchange_seconds = json_get_number(json, "exchange_seconds", NAN),
        .workers = json_integer_value(json_object_get(json, "workers")),
        .batch = json_integer_value(json_object_get(json, "batch")),
    };
    return speed_sample_is_sound(s);
}

static char *speed_cache_text(const char *folder)
{
    char path[PATH_MAX], *text;
    size_t bytes;

    if (file_path(path, NULL, "%s/speeds.jsonl", folder) ||
        file_read(path, CACHE_LIMIT_BYTES, &text, &bytes, NULL))
        return xstrdup("");
    return text;
}

static const char *speed_tail(const char *text, int lines)
{
    const char *end = text + strlen(text);

    while (end > text) {
        if (end[-1] == '\n' && lines-- == 0)
            return end;
        end--;
    }
    return text;
}

int speed_cache_add(const char *key, const struct plan_sample *sample, struct error *e)
{
    char folder[PATH_MAX], path[PATH_MAX], cpu[SPEED_CPU_BYTES];

    if (!file_cache_folder(folder))
        return error_set(e, ERR_NOT_FOUND, "neither XDG_CACHE_HOME nor HOME names a folder");
    int status = file_make_dirs(folder, e);
    if (status)
        return status;
    char *old = speed_cache_text(folder);
    json_t *line = speed_sample_to_json(sample);
    json_object_set_new(line, "key", json_string(key));
    json_object_set_new(line, "cpu", json_string(speed_cpu(cpu)));
    json_object_set_new(line, "t", json_number(clock_now()));
    char *words = must_alloc(json_dumps(line, JSON_COMPACT));
    char *text = xasprintf("%s%s\n", speed_tail(old, CACHE_LINES - 1), words);
    json_decref(line);
    status = file_path(path, e, "%s/speeds.jsonl", folder);
    if (!status)
        status = file_write_unsynced(path, text, strlen(text), e);
    free(text);
    free(words);
    free(old);
    return status;
}

static bool speed_is_about(const json_t *line, const char *key, const char *cpu)
{
    const char *its_key = json_string_value(json_object_get(line, "key"));
    const char *its_cpu = json_string_value(json_object_get(line, "cpu"));

    return its_key && its_cpu && strcmp(its_key, key) == 0 && strcmp(its_cpu, cpu) == 0;
}

size_t speed_cache_find(const char *key, struct plan_sample *samples, size_t max)
{
    char folder[PATH_MAX], cpu[SPEED_CPU_BYTES];
    size_t count = 0;

    if (!file_cache_folder(folder))
        return 0;
    char *text = speed_cache_text(folder), *end;
    speed_cpu(cpu);
    while (*text && count < max) { /* from the last line to the first */
        size_t length = strlen(text);
        while (length > 0 && text[length - 1] == '\n')
            text[--length] = '\0';
        end = strrchr(text, '\n');
        json_t *line = json_loads(end ? end + 1 : text, 0, NULL);
        if (speed_is_about(line, key, cpu) && speed_sample_read(line, &samples[count]))
            count++;
        json_decref(line);
        *(end ? end : text) = '\0';
    }
    free(text);
    return count;
}

static json_t *speed_network_load(char path[PATH_MAX])
{
    char folder[PATH_MAX];
    struct error ignored;

    *path = '\0';
    if (file_cache_folder(folder) && !file_make_dirs(folder, &ignored))
        file_path(path, NULL, "%s/network.json", folder);
    return *path ? json_document_load(path, &ignored) : NULL;
}

int speed_network_keep(const char *interface, const struct plan_network *network, struct error *e)
{
    char path[PATH_MAX];
    json_t *all = speed_network_load(path);

    all = json_is_object(all) ? all : json_object();
    json_object_set_new(all, interface ? interface : "",
                        json_pack("{s:o, s:o}", "hop_seconds", json_number(network->hop_seconds),
                                  "bytes_per_second", json_number(network->bytes_per_second)));
    int status = json_file_write(path, all, e);
    json_decref(all);
    return status;
}

void speed_network_find(const char *interface, struct plan_network *network)
{
    char path[PATH_MAX];
    json_t *all = speed_network_load(path);
    const json_t *one = json_object_get(all, interface ? interface : "");
    double hop = json_get_number(one, "hop_seconds", -1);
    double bytes = json_get_number(one, "bytes_per_second", -1);

    if (speed_within(hop, 0, 10) && speed_within(bytes, 1e3, 1e15)) {
        network->hop_seconds = hop;
        network->bytes_per_second = bytes;
    }
    json_decref(all);
}
