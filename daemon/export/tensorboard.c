#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/dataset/tfrecord.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "daemon/export/event.pb-c.h"
#include "daemon/export/tensorboard.h"
#include "daemon/store/metric.h"

#define STEPS_EXACT 20000 /* longer series are reduced to means */
#define HPARAMS_MAX 128
#define VALUES_MAX  8
#define FLOAT_TYPE  1 /* DT_FLOAT */
#define STRING_TYPE 7 /* DT_STRING */

struct board {
    FILE *out;
    struct error *e;
    int status;
    int64_t every_steps, last_step;  /* tensorboard.every_steps; the last step written */
    struct store_metric_part before; /* the last part seen */
};

static void tensorboard_write_event(struct board *b, const Tensorboard__Event *event)
{
    uint8_t header[TFRECORD_HEADER_BYTES], footer[TFRECORD_FOOTER_BYTES];
    size_t bytes = tensorboard__event__get_packed_size(event);
    uint8_t *payload = xmalloc(bytes);

    tensorboard__event__pack(event, payload);
    tfrecord_header(bytes, header);
    tfrecord_footer(payload, bytes, footer);
    fwrite(header, 1, sizeof header, b->out);
    fwrite(payload, 1, bytes, b->out);
    fwrite(footer, 1, sizeof footer, b->out);
    free(payload);
}

static void tensorboard_write_version(struct board *b, double t)
{
    Tensorboard__Event event = TENSORBOARD__EVENT__INIT;

    event.wall_time = t;
    event.what_case = TENSORBOARD__EVENT__WHAT_FILE_VERSION;
    event.file_version = (char *)"brain.Event:2";
    tensorboard_write_event(b, &event);
}

static void tensorboard_write_summary(struct board *b, double t, int64_t step,
                                      Tensorboard__SummaryValue **values, size_t count)
{
    Tensorboard__Event event = TENSORBOARD__EVENT__INIT;
    Tensorboard__Summary summary = TENSORBOARD__SUMMARY__INIT;

    if (count == 0)
        return;
    summary.n_value = count;
    summary.value = values;
    event.wall_time = t;
    event.step = step;
    event.what_case = TENSORBOARD__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    tensorboard_write_event(b, &event);
}

struct scalars {
    Tensorboard__SummaryValue values[VALUES_MAX], *pointers[VALUES_MAX];
    size_t count;
};

static void tensorboard_scalars_add(struct scalars *s, const char *tag, double value)
{
    if (!isfinite(value) || s->count == VALUES_MAX)
        return;
    Tensorboard__SummaryValue *v = &s->values[s->count];
    tensorboard__summary_value__init(v);
    v->tag = (char *)tag;
    v->value_case = TENSORBOARD__SUMMARY_VALUE__VALUE_SIMPLE_VALUE;
    v->simple_value = (float)value;
    s->pointers[s->count++] = v;
}

static void tensorboard_write_step(void *context, const struct store_metric_part *of)
{
    static const char *const wanted[] = {"loss", "lr", "images_per_sec", "grad_norm", "top1"};
    struct board *b = context;
    struct scalars s = {.count = 0};
    struct store_metric_part middle = *of, *part = &middle;

    if (b->before.rows == 0)
        b->before = *of;
    store_metric_to_middle(part, &b->before);
    if (part->step / b->every_steps == b->last_step / b->every_steps)
        return;
    b->last_step = part->step;

    for (size_t i = 0; event_metric_at(i); i++)
        for (size_t w = 0; w < sizeof wanted / sizeof wanted[0]; w++)
            if (part->of[i].count && strcmp(event_metric_at(i)->name, wanted[w]) == 0)
                tensorboard_scalars_add(&s, wanted[w], part->of[i].sum / part->of[i].count);
    tensorboard_write_summary(b, part->t, part->step, s.pointers, s.count);
}

static int tensorboard_write_evals(struct board *b, struct store *store, int64_t job_id,
                                   struct error *e)
{
    json_t *evals, *eval;
    size_t i;

    if (store_eval_list(store, job_id, &evals, e))
        return -(int)e->code;
    json_array_foreach (evals, i, eval) {
        struct scalars s = {.count = 0};
        tensorboard_scalars_add(&s, "eval/top1", json_get_number(eval, "top1", NAN));
        tensorboard_scalars_add(&s, "eval/top5", json_get_number(eval, "top5", NAN));
        tensorboard_scalars_add(&s, "eval/loss", json_get_number(eval, "loss", NAN));
        tensorboard_write_summary(b, json_get_number(eval, "t", NAN),
                                  json_integer_value(json_object_get(eval, "step")), s.pointers,
                                  s.count);
    }
    json_decref(evals);
    return 0;
}

struct hparams {
    Tensorboard__HparamEntry entries[HPARAMS_MAX], *pointers[HPARAMS_MAX];
    Tensorboard__HparamValue values[HPARAMS_MAX];
    char keys[HPARAMS_MAX][64];
    size_t count;
};

static void tensorboard_add_hparam(struct hparams *h, const char *key, const json_t *value)
{
    if (h->count == HPARAMS_MAX ||
        !(json_is_number(value) || json_is_string(value) || json_is_boolean(value)))
        return;
    size_t n = h->count++;
    Tensorboard__HparamValue *v = &h->values[n];
    tensorboard__hparam_value__init(v);
    tensorboard__hparam_entry__init(&h->entries[n]);
    snprintf(h->keys[n], sizeof h->keys[n], "%s", key);
    h->entries[n].key = h->keys[n];
    h->entries[n].value = v;
    h->pointers[n] = &h->entries[n];
    if (json_is_string(value)) {
        v->kind_case = TENSORBOARD__HPARAM_VALUE__KIND_STRING_VALUE;
        v->string_value = (char *)json_string_value(value);
    } else if (json_is_boolean(value)) {
        v->kind_case = TENSORBOARD__HPARAM_VALUE__KIND_BOOL_VALUE;
        v->bool_value = json_is_true(value);
    } else {
        v->kind_case = TENSORBOARD__HPARAM_VALUE__KIND_NUMBER_VALUE;
        v->number_value = json_number_value(value);
    }
}

static void tensorboard_add_hparams(struct hparams *h, json_t *object, const char *prefix)
{
    const char *key;
    json_t *value;

    json_object_foreach (object, key, value) {
        char path[64];
        snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", key);
        if (json_is_object(value))
            tensorboard_add_hparams(h, value, path);
        else
            tensorboard_add_hparam(h, path, value);
    }
}

/* Adds the current labels, tags as a single string. */
static void tensorboard_add_labels(json_t *spec, const struct store_job *job)
{
    json_t *tags = job->tags ? json_loads(job->tags, 0, NULL) : NULL, *tag, *text = NULL;
    size_t i;

    json_array_foreach (tags, i, tag) {
        json_t *longer =
            text ? json_sprintf("%s, %s", json_string_value(text), json_string_value(tag))
                 : json_incref(tag);
        json_decref(text);
        text = longer;
    }
    json_object_set_new(spec, "name", json_text_or_null(job->name));
    json_object_set_new(spec, "tags", text ? text : json_null());
    json_object_set_new(spec, "note", json_text_or_null(job->note));
    json_decref(tags);
}

/* TensorBoard's plug-ins expect a tensor, whatever it contains. */
static void tensorboard_write_tensor(struct board *b, double t, const char *tag,
                                     const char *plugin_name, ProtobufCBinaryData content,
                                     Tensorboard__Tensor *tensor)
{
    Tensorboard__SummaryValue value = TENSORBOARD__SUMMARY_VALUE__INIT, *pointer = &value;
    Tensorboard__SummaryMetadata metadata = TENSORBOARD__SUMMARY_METADATA__INIT;
    Tensorboard__PluginData plugin = TENSORBOARD__PLUGIN_DATA__INIT;
    Tensorboard__TensorShape shape = TENSORBOARD__TENSOR_SHAPE__INIT;

    plugin.plugin_name = (char *)plugin_name;
    plugin.content = content;
    metadata.plugin_data = &plugin;
    tensor->tensor_shape = &shape;
    value.tag = (char *)tag;
    value.metadata = &metadata;
    value.value_case = TENSORBOARD__SUMMARY_VALUE__VALUE_TENSOR;
    value.tensor = tensor;
    tensorboard_write_summary(b, t, 0, &pointer, 1);
}

static void tensorboard_write_note(struct board *b, const struct store_job *job)
{
    Tensorboard__Tensor tensor = TENSORBOARD__TENSOR__INIT;

    if (!job->note)
        return;
    ProtobufCBinaryData text = {strlen(job->note), (uint8_t *)job->note};
    tensor.dtype = STRING_TYPE;
    tensor.n_string_val = 1;
    tensor.string_val = &text;
    tensorboard_write_tensor(b, job->created_at, "note", "text", (ProtobufCBinaryData){0}, &tensor);
}

static void tensorboard_write_plugin(struct board *b, double t, uint8_t *content, size_t bytes)
{
    Tensorboard__Tensor tensor = TENSORBOARD__TENSOR__INIT;
    float zero = 0;

    tensor.dtype = FLOAT_TYPE;
    tensor.n_float_val = 1;
    tensor.float_val = &zero;
    tensorboard_write_tensor(b, t, "_hparams_/session_start_info", "hparams",
                             (ProtobufCBinaryData){bytes, content}, &tensor);
}

static void tensorboard_write_hparams(struct board *b, const struct store_job *job)
{
    Tensorboard__HparamsData data = TENSORBOARD__HPARAMS_DATA__INIT;
    Tensorboard__SessionStart start = TENSORBOARD__SESSION_START__INIT;
    struct hparams *h = xcalloc(1, sizeof *h);
    json_t *spec = json_copy((json_t *)store_job_spec(job));
    char name[32];

    tensorboard_add_labels(spec, job);
    tensorboard_add_hparams(h, spec, "");
    json_int_t every =
        json_integer_value(json_object_get(json_object_get(spec, "tensorboard"), "every_steps"));
    b->every_steps = every > 0 ? every : 1; /* jobs of older versions do not set it */
    snprintf(name, sizeof name, "job-%lld", (long long)job->id);
    start.n_hparams = h->count;
    start.hparams = h->pointers;
    start.group_name = name;
    start.start_time_secs = job->created_at;
    data.session_start_info = &start;
    size_t bytes = tensorboard__hparams_data__get_packed_size(&data);
    uint8_t *content = xmalloc(bytes);
    tensorboard__hparams_data__pack(&data, content);
    tensorboard_write_plugin(b, job->created_at, content, bytes);
    free(content);
    free(h);
    json_decref(spec);
}

int export_tensorboard(struct store *store, const struct store_job *job, FILE *out, struct error *e)
{
    struct board b = {.out = out, .e = e};
    struct store_metric_ends ends;

    tensorboard_write_version(&b, job->created_at);
    tensorboard_write_hparams(&b, job);
    tensorboard_write_note(&b, job);
    int status = store_metric_ends(store, job->id, 0, INT64_MAX, STEPS_EXACT, &ends, e);
    if (status == 0)
        status = store_metric_parts(store, job->id, ends.first_step, ends.last_step + 1,
                                    ends.rows > STEPS_EXACT ? STEPS_EXACT / 2 : INT64_MAX,
                                    tensorboard_write_step, &b, e);
    if (status == 0)
        status = tensorboard_write_evals(&b, store, job->id, e);
    return status ? status : b.status;
}
