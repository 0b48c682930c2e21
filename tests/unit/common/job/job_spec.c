#include <math.h>
#include <stdio.h>

#include "common/job/job_document.h"
#include "common/job/job_spec.h"
#include "common/job/job_value.h"
#include "common/net/arch.h"
#include "tests/unit/common/job.h"

TestSuite(job_spec, .init = use_source_presets);

/* ---- documents with one key */

/* {"data": {"train": "x"}, ...} with value at pointer; value is taken over. */
static json_t *document_with(const char *pointer, json_t *value)
{
    json_t *document = json_pack("{s:{s:s}}", "data", "train", "x");
    const char *key = pointer + 1, *slash = strchr(key, '/');
    char group[64];

    if (!slash) {
        json_object_set_new(document, key, value);
        return document;
    }
    snprintf(group, sizeof group, "%.*s", (int)(slash - key), key);
    if (!json_object_get(document, group))
        json_object_set_new(document, group, json_object());
    json_object_set_new(json_object_get(document, group), slash + 1, value);
    return document;
}

/* The value must give one problem, at the row's own pointer. */
static void spec_refuses(const struct job_option *o, json_t *value, const char *what)
{
    struct problems problems = {0};
    json_t *document = document_with(o->pointer, value);
    struct job_spec *spec = job_spec_parse(document, NULL, NULL, &problems);
    char *text = problems_to_text(&problems);

    cr_assert_null(spec, "%s took %s", o->pointer, what);
    cr_assert_eq(problems.count, 1, "%s, %s: %s", o->pointer, what, text);
    cr_assert_str_eq(problems.items[0].pointer, o->pointer);
    cr_assert_not_null(strstr(text, ", not "), "%s does not say what was given", text);
    free(text);
    json_decref(document);
    problems_clear(&problems);
}

static json_t *wrong_type(const struct job_option *o)
{
    bool numeric = o->type == JOB_OPTION_INTEGER || o->type == JOB_OPTION_NUMBER ||
                   o->type == JOB_OPTION_SIZES;

    return numeric ? json_string("fast") : json_integer(1);
}

Test(job_spec, every_row_refuses_a_wrong_type)
{
    for (size_t i = 0; job_option_at(i); i++) {
        const struct job_option *o = job_option_at(i);
        spec_refuses(o, wrong_type(o), "a wrong type");
        json_t *shape = o->type == JOB_OPTION_MAP     ? json_array()
                        : o->type == JOB_OPTION_SIZES ? json_true()
                                                      : json_object();
        spec_refuses(o, shape, "another shape");
        if (!o->nullable)
            spec_refuses(o, json_null(), "null");
    }
}

static json_t *spec_list(const struct job_option *o, double x)
{
    if (o->type == JOB_OPTION_NUMBERS)
        return json_pack("[f]", x);
    if (o->type == JOB_OPTION_STEPS)
        return json_pack("[f, f]", x, x);
    return json_real(x);
}

Test(job_spec, every_number_refuses_what_is_below_and_above_its_range)
{
    int numbers = 0;

    for (size_t i = 0; job_option_at(i); i++) {
        const struct job_option *o = job_option_at(i);
        if (o->type != JOB_OPTION_INTEGER && o->type != JOB_OPTION_NUMBER &&
            o->type != JOB_OPTION_NUMBERS && o->type != JOB_OPTION_STEPS)
            continue;
        numbers++;
        spec_refuses(o, spec_list(o, o->above_min ? o->min : o->min - 1), "one below its minimum");
        spec_refuses(o, spec_list(o, o->below_max ? o->max : o->max + 1 + o->max / 1e9),
                     "one above its maximum");
    }
    cr_assert_gt(numbers, 30);
}

/* What other programs' users write. */
Test(job_spec, keys_of_other_programs_get_a_suggestion)
{
    static const struct {
        const char *document, *pointer, *words, *suggestion;
    } cases[] = {
        {"{'model': 'resnet50'}",    "/model",        "did you mean {\"arch\": \"resnet50\"}?", NULL  },
        {"{'lr': 0.1}",              "/lr",           "did you mean {\"base\": 0.1}?",          NULL  },
        {"{'optimizer': 'adam'}",    "/optimizer",    "did you mean {\"name\": \"adam\"}?",     NULL  },
        {"{'data': '/shards'}",      "/data",         "did you mean {\"train\": \"/shards\"}?", NULL  },
        {"{'lr': true}",             "/lr",           "keys as in man train-job",               NULL  },
        {"{'cluster': {'gpus': 4}}", "/cluster/gpus", "trains on CPUs, without GPUs",           NULL  },
        {"{'num_gpus': 4}",          "/num_gpus",     "trains on CPUs, without GPUs",           NULL  },
        {"{'precision': 'fp16'}",    "/precision",    "must be one of",                         "bf16"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct problems problems = {0};
        job_parse(cases[i].document, &problems);
        const struct problem *p = problem_at(&problems, cases[i].pointer);
        cr_assert_not_null(p, "%s", cases[i].document);
        cr_expect_not_null(strstr(p->message, cases[i].words), "%s: %s", cases[i].document,
                           p->message);
        if (cases[i].suggestion)
            cr_expect_str_eq(p->suggestion, cases[i].suggestion);
        problems_clear(&problems);
    }
}

static json_t *repeated(char letter, size_t count)
{
    char *text = malloc(count);

    memset(text, letter, count);
    json_t *value = json_stringn(text, count);
    free(text);
    return value;
}

Test(job_spec, every_string_refuses_empty_too_long_and_control_characters)
{
    for (size_t i = 0; job_option_at(i); i++) {
        const struct job_option *o = job_option_at(i);
        if (o->type != JOB_OPTION_STRING)
            continue;
        spec_refuses(o, json_string(""), "an empty string");
        spec_refuses(o, repeated('x', (size_t)o->max + 1), "a string too long");
        spec_refuses(o, json_string(o->text == JOB_TEXT_NOTE ? "a\rb" : "a\nb"), "a line break");
    }
}

Test(job_spec, every_choice_refuses_other_words_and_lists_all)
{
    for (size_t i = 0; job_option_at(i); i++) {
        const struct job_option *o = job_option_at(i);
        char expects[JOB_OPTION_EXPECTS_BYTES];
        if (o->type != JOB_OPTION_CHOICE && o->type != JOB_OPTION_ARCH)
            continue;
        spec_refuses(o, json_string("zebra"), "a zebra");
        job_option_expects(o, expects);
        for (size_t c = 0; job_option_choice(o, c); c++)
            cr_assert_not_null(strstr(expects, job_option_choice(o, c)));
    }
}

Test(job_spec, every_default_is_valid)
{
    struct problems problems = {0};

    for (size_t i = 0; job_option_at(i); i++) {
        json_t *value = job_option_default(job_option_at(i));
        cr_assert_not_null(value, "%s", job_option_at(i)->pointer);
        cr_assert(job_value_check(job_option_at(i), value, &problems));
        json_decref(value);
    }
}

/* ---- whole documents */

Test(job_spec, only_data_train_is_required)
{
    struct job_spec *spec = job_of("{'data': {'train': '/x'}}");

    cr_assert_str_eq(spec->data.train, "/x");
    cr_assert_null(spec->data.eval);
    cr_assert_null(spec->name);
    cr_assert_str_eq(spec->model.arch, "resnet50");
    cr_assert_eq(spec->batch_per_worker, 48);
    cr_assert_float_eq(spec->lr.base, 0.1, 0);
    cr_assert_eq(spec->lr.milestone_count, 3);
    cr_assert_float_eq(spec->lr.milestones[2], 80, 0);
    cr_assert(!spec->has_steps && !spec->lr.has_start && !spec->data.has_train_images);
    cr_assert_eq(job_spec_world_size(spec), 2);
    job_spec_destroy(spec);

    struct problems problems = {0};
    cr_assert_null(job_parse("{}", &problems));
    cr_assert_eq(problems.count, 1);
    cr_assert_str_eq(problems.items[0].pointer, "/data/train");
    problems_clear(&problems);
}

/* A value that differs from the default wherever there is one. */
static json_t *other_value(const struct job_option *o)
{
    json_t *fallback = job_option_default(o);
    double middle = o->above_min || o->type == JOB_OPTION_NUMBER ? (o->min + o->max) / 3 : o->max;
    bool is_true = json_is_true(fallback);

    json_decref(fallback);
    switch (o->type) {
    case JOB_OPTION_BOOLEAN:
        return json_boolean(!is_true);
    case JOB_OPTION_INTEGER:
        return json_integer((json_int_t)o->max);
    case JOB_OPTION_NUMBER:
        return json_real(middle);
    case JOB_OPTION_STRING:
        return json_string(o->text == JOB_TEXT_TIME     ? "1:30"
                           : o->text == JOB_TEXT_PREFIX ? "/opt/x"
                           : o->text == JOB_TEXT_TILES  ? "56x64-64:4/2/0"
                           : o->text == JOB_TEXT_TITLE || o->text == JOB_TEXT_PATH
                               ? "\xc3\xa9 \"x\""
                               : "x_1");
    case JOB_OPTION_CHOICE:
    case JOB_OPTION_ARCH:
        return json_string(job_option_choice(o, 1));
    case JOB_OPTION_STRINGS:
        return o->text == JOB_TEXT_ARGUMENT ? json_pack("[s, s]", "--mca", "a b")
                                            : json_pack("[s, s]", "n1", "n2:4");
    case JOB_OPTION_NUMBERS:
        return o->whole ? json_pack("[i, i]", 3, 7) : json_pack("[f, f]", 0.25, 1.0 / 3);
    case JOB_OPTION_STEPS:
        return json_pack("[i, i]", 5, 8);
    case JOB_OPTION_SIZES:
        return json_pack("{s:i, s:i, s:[i, i], s:i}", "from", 160, "to", 192, "ramp", 6, 17,
                         "multiple", 16);
    case JOB_OPTION_NOTIFY:
        return json_pack("[{s:s, s:[s, s], s:s}, {s:s, s:[s], s:s}]", "to",
                         "https://[::1]:8443/a?b=%20", "on", "succeeded", "sweep_done", "format",
                         "text", "to", "mailto:eve+x@example.org", "on", "node_drained", "format",
                         "json");
    case JOB_OPTION_MAP:
        return json_pack("{s:s, s:s}", "UCX_TLS", "tcp,self", "KMP_AFFINITY", "granularity=fine a");
    }
    return NULL;
}

Test(job_spec, every_value_survives_the_way_to_json_and_back)
{
    for (size_t i = 0; job_option_at(i); i++) {
        const struct job_option *o = job_option_at(i);
        struct job_spec *spec = job_of("{'data': {'train': 'x'}}");
        json_t *value = other_value(o);
        struct problems problems = {0};

        cr_assert(job_value_check(o, value, &problems), "%s", o->pointer);
        job_value_store(o, value, spec);
        json_t *loaded = job_value_load(o, spec);
        cr_assert(json_equal(loaded, value) ||
                      json_number_value(loaded) == json_number_value(value),
                  "%s", o->pointer);
        json_decref(loaded);
        json_decref(value);
        job_spec_destroy(spec);
    }
}

Test(job_spec, a_written_document_parses_to_the_same)
{
    struct job_spec *spec =
        job_of("{'name': 'a', 'data': {'train': 'x', 'train_images': 5}, 'lr': {'milestones': [], "
               "'start': 0.1, 'base': 0.3333333333333333}, 'cluster': {'mpi_args': ['-x', 'A=b "
               "c'], 'hosts': ['n1']}, 'profile': {'steps': [3, 4]}, 'steps': 7.0}");
    json_t *written = job_spec_to_json(spec);
    struct problems problems = {0};
    struct job_spec *again = job_spec_parse(written, NULL, NULL, &problems);

    cr_assert_not_null(again);
    json_t *rewritten = job_spec_to_json(again);
    cr_assert(json_equal(written, rewritten));
    cr_assert_eq(again->steps, 7);
    cr_assert_eq(again->profile.last_step, 4);
    cr_assert_str_eq(again->cluster.mpi_args[1], "A=b c");
    for (size_t i = 0; job_option_at(i); i++) {
        const char *slash = strchr(job_option_at(i)->pointer + 1, '/');
        if (!slash)
            cr_assert_not_null(json_object_get(written, job_option_at(i)->pointer + 1));
    }
    json_decref(written);
    json_decref(rewritten);
    job_spec_destroy(spec);
    job_spec_destroy(again);
}

Test(job_spec, a_misspelt_group_gets_a_suggestion)
{
    static const char *const near[][2] = {
        {"/optimizr/name",    "/optimizer/name"},
        {"/optimiser/nam",    "/optimizer/name"},
        {"/modle/train",      "/data/train"    },
        {"/clsuter/nodes",    "/cluster/nodes" },
        {"/optimizer/epochs", "/epochs"        },
        {"/nam",              "/name"          },
        {"/base",             "/lr/base"       },
    };

    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++)
        cr_expect_str_eq(job_option_nearest(near[i][0]), near[i][1], "%s", near[i][0]);
}

Test(job_spec, all_problems_at_once_with_the_nearest_right_key)
{
    struct problems p = {0};
    static const struct {
        const char *pointer, *suggestion;
    } expected[] = {
        {"/learning_rate",     "/lr/base"                 },
        {"/lr/bas",            "/lr/base"                 },
        {"/lr/warmup",         "/lr/warmup_epochs"        },
        {"/lr/scaling",        "linear"                   },
        {"/lr/decay",          "poly"                     },
        {"/momentum",          "/optimizer/momentum"      },
        {"/batch_per_workers", "/batch_per_worker"        },
        {"/cluster/workers",   "/cluster/workers_per_node"},
        {"/model/arch",        "resnet50"                 },
        {"/data/evaluation",   NULL                       },
        {"/cluster/nodes",     NULL                       },
        {"/seed",              NULL                       },
        {"/a~1b",              NULL                       },
    };

    cr_assert_null(
        job_parse("{'learning_rate': 1, 'momentum': 0.9, 'batch_per_workers': 3, 'seed': 1.5, "
                  "'a/b': 1, 'lr': {'bas': 1, 'warmup': 3, 'scaling': 'linea', 'decay': "
                  "'polynomial'}, 'cluster': {'nodes': -1, 'workers': 2}, 'model': {'arch': "
                  "'ResNet-50'}, 'data': {'train': 'x', 'evaluation': 'y'}}",
                  &p));
    cr_assert_eq(p.count, sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        const struct problem *found = problem_at(&p, expected[i].pointer);
        cr_assert_not_null(found, "no problem at %s", expected[i].pointer);
        if (expected[i].suggestion)
            cr_assert_str_eq(found->suggestion, expected[i].suggestion, "%s", expected[i].pointer);
    }
    problems_clear(&p);
}

Test(job_spec, nodes_out_of_range_name_the_range)
{
    static const char *const wrong[] = {"0", "-1", "1000000000"};

    for (size_t i = 0; i < 3; i++) {
        char text[128];
        struct problems p = {0};
        snprintf(text, sizeof text, "{'data': {'train': 'x'}, 'cluster': {'nodes': %s}}", wrong[i]);
        cr_assert_null(job_parse(text, &p));
        cr_assert_eq(p.count, 1);
        cr_assert_not_null(strstr(p.items[0].message, "from 1 to 100000, not "));
        cr_assert_not_null(strstr(p.items[0].message, wrong[i]));
        problems_clear(&p);
    }
}

Test(job_spec, a_group_must_be_an_object)
{
    struct problems p = {0};

    cr_assert_null(job_parse("{'data': {'train': 'x'}, 'lr': 0.1}", &p));
    cr_assert_eq(p.count, 1);
    cr_assert_str_eq(p.items[0].pointer, "/lr");
    problems_clear(&p);
    cr_assert_null(job_parse("{'data': null}", &p));
    cr_assert_eq(p.count, 1); /* data.train is not asked for a second time */
    problems_clear(&p);
}

Test(job_spec, thousands_of_unknown_keys_are_cut_short)
{
    json_t *document = json_pack("{s:{s:s}}", "data", "train", "x");
    struct problems p = {0};
    char key[32];

    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof key, "key%d", i);
        json_object_set_new(document, key, json_integer(i));
    }
    cr_assert_null(job_spec_parse(document, NULL, NULL, &p));
    cr_assert_lt(p.count, 100);
    problems_clear(&p);
    json_decref(document);
}

/* ---- what two keys demand of each other */

static void refuse_document(const char *text, const char *pointer)
{
    struct problems p = {0};

    cr_assert_null(job_parse(text, &p), "%s", text);
    cr_assert_eq(p.count, 1, "%s", text);
    cr_assert_str_eq(p.items[0].pointer, pointer);
    problems_clear(&p);
}

Test(job_spec, a_percentage_is_shown_as_a_fraction)
{
    static const struct {
        const char *value, *message;
    } cases[] = {
        {"75.9", "must be a number above 0, at most 1, or null, not 75.9; 75.9 % is 0.759"},
        {"101",  "must be a number above 0, at most 1, or null, not 101"                  },
        {"0",    "must be a number above 0, at most 1, or null, not 0"                    },
    };
    char text[128];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct problems p = {0};
        snprintf(text, sizeof text,
                 "{'data': {'train': 'x', 'eval': 'e'}, 'eval': {'target_top1': %s}}",
                 cases[i].value);
        cr_assert_null(job_parse(text, &p));
        cr_expect_str_eq(p.items[0].message, cases[i].message);
        problems_clear(&p);
    }
}

static const char *hosts_refused(const char *hosts)
{
    static char message[600];
    struct problems problems = {0};
    json_t *document =
        json_pack("{s:{s:s}, s:{s:o}}", "data", "train", "x", "cluster", "hosts", json_of(hosts));

    cr_assert_null(job_spec_parse(document, NULL, NULL, &problems), "%s", hosts);
    snprintf(message, sizeof message, "%s: %s", problems.items[0].pointer,
             problems.items[0].message);
    problems_clear(&problems);
    json_decref(document);
    return message;
}

Test(job_spec, ranges_of_hosts_become_their_names)
{
    struct problems problems = {0};
    json_t *document = json_of("{'data': {'train': 'x'}, 'cluster': {'nodes': 3, 'hosts': "
                               "['gpu[01-02,07]-ib:16', 'login,n[9-10]']}}");
    struct job_spec *spec = job_spec_parse(document, NULL, NULL, &problems);
    cr_assert_not_null(spec, "%s", problems.count ? problems.items[0].message : "");
    json_t *stored = job_spec_to_json(spec);
    char *text =
        json_dumps(json_object_get(json_object_get(stored, "cluster"), "hosts"), JSON_COMPACT);
    cr_assert_str_eq(text,
                     "[\"gpu01-ib:16\",\"gpu02-ib:16\",\"gpu07-ib:16\",\"login\",\"n9\",\"n10\"]");
    free(text);
    json_decref(stored);
    json_decref(document);
    job_spec_destroy(spec);
    document = json_pack("{s:{s:s}, s:{s:[s,s]}}", "data", "train", "x", "cluster", "hosts",
                         "n[0-4094]", "last");
    spec = job_spec_parse(document, NULL, NULL, &problems);
    cr_assert_not_null(spec);
    cr_assert_eq(spec->cluster.host_count, 4096);
    cr_assert_str_eq(spec->cluster.hosts[4095], "last");
    job_spec_destroy(spec);
    json_decref(document);
}

static void check_freeze(const char *model, int parts)
{
    char text[256];

    snprintf(text, sizeof text, "{'data': {'train': 'x', 'preprocess': 'whole'}, 'model': {%s}}",
             model);
    struct job_spec *spec = job_of(text);
    cr_expect_eq(arch_shape_of(spec).frozen, parts, "%s", model);
    spec->mode = JOB_MODE_EVAL;
    cr_expect_eq(arch_shape_of(spec).frozen, 0, "an evaluation trains nothing");
    job_spec_destroy(spec);
}

Test(job_spec, frozen_parts_are_the_first_in_any_order)
{
    check_freeze("'freeze': []", 0);
    check_freeze("'freeze': ['conv1']", 1);
    check_freeze("'freeze': ['layer2', 'conv1', 'layer1']", 3);
    check_freeze("'freeze': 'backbone'", 5);
    check_freeze("'freeze': ['backbone']", 5);
    check_freeze("'arch': 'cnn', 'freeze': ['conv2', 'conv1']", 2);
    check_freeze("'arch': 'cnn', 'freeze': 'backbone'", 3);
}

Test(job_spec, frozen_parts_with_a_gap_or_unknown_are_refused)
{
    static const char *const wrong[] = {
        "['layer1']",
        "['conv1', 'layer2']",
        "['conv1', 'layer5']",

        "['conv1', 'fc']",
        "'layer1'",
        "true",
        "['bn1']",
        "['backbone', 'fc']",
        "['conv1', 'layer1', 'layer2', 'layer3', 'layer4', 'fc']",
    };
    char text[256];

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(text, sizeof text, "{'data': {'train': 'x'}, 'model': {'freeze': %s}}", wrong[i]);
        refuse_document(text, "/model/freeze");
    }
    struct problems problems = {0};
    cr_assert_null(job_parse(text, &problems));
    cr_expect_not_null(
        strstr(problems.items[0].message, "the first parts of resnet50 without a gap"));
    cr_expect_not_null(
        strstr(problems.items[0].message, "conv1 (with bn1), layer1, layer2, layer3, layer4"));
    problems_clear(&problems);
}

Test(job_spec, class_weights_are_one_for_each_class_or_balanced)
{
    static const struct {
        const char *value, *says;
    } wrong[] = {
        {"[1, 2]",            "must have 3 numbers, one for each class"        },
        {"[0, 0, 0]",         "must have a number above 0"                     },
        {"[1, -1, 1]",        "numbers from 0 to 1000000, or \"balanced\", not"},
        {"[1, '2', 1]",       "must be a list of at most 1000 numbers"         },
        {"[-1]",              "must be a list of at most 1000 numbers"         },
        {"'even'",            "or \"balanced\", not \"even\""                  },
        {"null",              "must be a list of at most 1000 numbers"         },
        {"{'0': 1, '1': 50}", "must be a list of at most 1000 numbers"         },
    };
    char text[160];

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct problems problems = {0};
        snprintf(text, sizeof text,
                 "{'data': {'train': 'x'}, 'model': {'classes': 3}, 'class_weights': %s}",
                 wrong[i].value);
        cr_assert_null(job_parse(text, &problems), "%s", text);
        cr_expect_str_eq(problems.items[0].pointer, "/class_weights");
        cr_expect(strstr(problems.items[0].message, wrong[i].says), "%s",
                  problems.items[0].message);
        problems_clear(&problems);
    }
    refuse_document("{'data': {'train': 'synthetic'}, 'class_weights': 'balanced'}",
                    "/class_weights");
    struct job_spec *spec = job_of("{'data': {'train': 'x'}, 'class_weights': 'balanced'}");
    json_t *loaded = job_value_load(job_option_find("/class_weights"), spec);
    cr_expect(job_spec_balances(spec));
    cr_expect_str_eq(json_string_value(loaded), "balanced");
    json_decref(loaded);
    job_spec_destroy(spec);
    spec = job_of(
        "{'data': {'train': 'synthetic'}, 'model': {'classes': 2}, 'class_weights': [0, 2.5]}");
    cr_expect(!job_spec_balances(spec) && spec->class_weight_count == 2);
    cr_expect_float_eq(spec->class_weights[1], 2.5, 0);
    job_spec_destroy(spec);
    spec = job_of("{'data': {'train': 'x'}}");
    cr_expect_eq(spec->class_weight_count, 0);
    job_spec_destroy(spec);
}

Test(job_spec, what_is_wrong_with_ranges_of_hosts_is_named)
{
    cr_expect(
        strstr(hosts_refused("[\"a\", \"n[5-1]\"]"), "/cluster/hosts/1: must be a host's name"));
    cr_expect(
        strstr(hosts_refused("[\"n[5-1]\"]"), "not \"n[5-1]\": the range 5-1 runs backwards"));
    cr_expect(strstr(hosts_refused("[\"n[1-4\"]"), "the bracket of \"n[1-4\" is not closed"));
    cr_expect(strstr(hosts_refused("[\"n[1-5000]\"]"), "it names more than 4096 hosts"));
    cr_expect_str_eq(hosts_refused("[\"n[1-4000]\", \"m[1-97]\"]"),
                     "/cluster/hosts: names more than 4096 hosts");
    cr_expect(
        strstr(hosts_refused("[\"n[1-9]\", \"n4:8\"]"), "n4:8 names the same host a second time"));
    cr_expect(strstr(hosts_refused("[\"n[1-9]:1\"]"), "/cluster/hosts/0: n1:1 has fewer slots"));
    cr_expect(strstr(hosts_refused("[\"n[1-2]:0\"]"), "/cluster/hosts/0: must be a host's name"));
    cr_expect(strstr(hosts_refused("[\"n1]\"]"), "/cluster/hosts/0: must be a host's name"));
    cr_expect(
        strstr(hosts_refused("[\"[1-3]-[0-1]$(id)\"]"), "/cluster/hosts/0: must be a host's name"));
    json_t *many = json_array();
    for (int i = 0; i < 5000; i++)
        json_array_append_new(many, json_string("n"));
    char *text = json_dumps(many, 0);
    const char *message = hosts_refused(text);
    cr_expect(strstr(message, "a list of at most 4096 strings") &&
                  strstr(message, "not 5000 of them"),
              "%s", message);
    free(text);
    json_decref(many);
}

Test(job_spec, keys_that_need_another_key_are_refused_without_it)
{
    refuse_document("{'mode': 'eval', 'model': {'init': 'w'}}", "/data/eval");
    refuse_document("{'mode': 'eval', 'data': {'eval': 'e'}}", "/model/init");
    job_spec_destroy(job_of("{'mode': 'eval', 'data': {'eval': 'synthetic'}}"));
    refuse_document("{'data': {'train': 'x', 'eval': 'e'}, 'eval': {'stop_at_target': true}}",
                    "/eval/stop_at_target");
    refuse_document(
        "{'data': {'train': 'x'}, 'eval': {'stop_at_target': true, 'target_top1': 0.5}}",
        "/eval/stop_at_target");
    refuse_document("{'data': {'train': 'x'}, 'eval': {'predictions': true}}", "/eval/predictions");
    refuse_document("{'data': {'train': 'x'}, 'lr': {'milestones': [30, 30]}}", "/lr/milestones");
    refuse_document("{'data': {'train': 'x'}, 'cluster': {'time_limit': '1h'}}",
                    "/cluster/time_limit");
    refuse_document("{'data': {'train': 'x'}, 'profile': {'steps': [8, 5]}}", "/profile/steps");
    refuse_document("{'data': {'train': 'x'}, 'cluster': {'nodes': 3, 'hosts': ['a', 'b']}}",
                    "/cluster/hosts");
    refuse_document("{'data': {'train': 'x'}, 'cluster': {'ssh_port': 2222}}", "/cluster/ssh_port");
    refuse_document("{'data': {'train': 'x'}, 'cluster': {'ssh_port': 2222, 'launcher': 'slurm', "
                    "'hosts': ['a']}}",
                    "/cluster/ssh_port");
    static const char *const hosts[] = {"\"a\", \"a\"",   "\"a:2\", \"a:3\"", "\"a\", \"-oProxy\"",
                                        "\"a\", \"b c\"", "\"a\", \"b:0\"",   "\"a\", \"b:99999\"",
                                        "\"a\", \"b:1\"", "\"a\", \"b:2x\"",  "\"a\", \"$(id)\""};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        char text[160];
        snprintf(text, sizeof text, "{'data': {'train': 'x'}, 'cluster': {'hosts': [%s]}}",
                 hosts[i]);
        refuse_document(text, "/cluster/hosts/1");
    }
    refuse_document("{'data': {'train': 'x'}, 'cluster': {'interface': 'eth0;id'}}",
                    "/cluster/interface");
    refuse_document("{'data': {'train': 'x'}, 'cluster': {'bind': 'core:PE=2'}}", "/cluster/bind");
    refuse_document("{'data': {'train': 'x'}, 'cluster': {'smt': 2}}", "/cluster/smt");
    refuse_document("{'data': {'train': 'x'}, 'cluster': {'bind': 'none', 'mpi_args': "
                    "['--tag-output', '--bind-to', 'core']}}",
                    "/cluster/mpi_args/1");
    refuse_document(
        "{'data': {'train': 'x'}, 'cluster': {'smt': true, 'mpi_args': ['-map-by', 'slot']}}",
        "/cluster/mpi_args/0");
    job_spec_destroy(
        job_of("{'data': {'train': 'x'}, 'cluster': {'mpi_args': ['--map-by', 'slot']}}"));
    job_spec_destroy(job_of("{'mode': 'eval', 'model': {'init': 'w'}, 'data': {'eval': 'e'}}"));
}

/* ---- what is right */

static void is_taken(const char *more)
{
    char text[256];

    snprintf(text, sizeof text, "{'data': {'train': 'synthetic'}, %s}", more);
    job_spec_destroy(job_of(text));
}

Test(job_spec, only_a_job_on_named_hosts_can_grow)
{
    static const struct {
        const char *cluster, *pointer;
    } wrong[] = {
        {"{}",                                                                "/restart/grow" },
        {"{'launcher': 'slurm', 'nodes': 2}",                                 "/restart/grow" },
        {"{'nodes': 2, 'hosts': ['a']}",                                      "/cluster/hosts"},
        {"{'nodes': 2, 'hosts': ['a', 'b']}, 'restart': {'grow_seconds': -1",
         "/restart/grow_seconds"                                                              },
    };
    char text[256];

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        bool both = strstr(wrong[i].cluster, "restart") != NULL;
        snprintf(text, sizeof text, "{'data': {'train': 'x'}, 'cluster': %s%s}", wrong[i].cluster,
                 both ? "}" : ", 'restart': {'grow': true}");
        refuse_document(text, wrong[i].pointer);
    }
    is_taken("'cluster': {'nodes': 2, 'hosts': ['a', 'b', 'c']}, 'restart': {'grow': true}");
}

Test(job_spec, valid_documents_are_accepted)
{
    is_taken("'precision': 'bf16'");
    is_taken("'model': {'arch': 'resnext101_32x8d'}");
    is_taken("'model': {'arch': 'resnet18', 'stem': 'small'}");
    is_taken("'cluster': {'nodes': 256}");
    is_taken("'cluster': {'launcher': 'slurm', 'partition': 'x'}");
    is_taken("'cluster': {'hosts': ['a:4', 'b'], 'interface': 'ib0'}");
    is_taken("'priority': 1, 'restart': {'max': 0}");
    is_taken("'cluster': {'time_limit': '1:30:00'}");
    is_taken("'optimizer': {'nesterov': true, 'label_smoothing': 0.1, 'decay_bn': true}");
    is_taken("'accumulate_steps': 2, 'optimizer': {'name': 'lars'}");
    is_taken("'cluster': {'mpi_args': ['-x']}, 'restart': {'max': 3}");
    is_taken("'lr': {'decay': 'cosine', 'scaling': 'sqrt'}, 'comm': {'overlap': false}");
}

/* ---- presets */

Test(job_spec, a_preset_supplies_what_the_document_does_not_state)
{
    struct job_spec *spec =
        job_of("{'preset': 'surfsara-24k', 'data': {'train': 'x'}, 'epochs': 3}");

    cr_assert_eq(spec->cluster.nodes, 256);
    cr_assert_float_eq(spec->lr.factor, 0.5, 0);
    cr_assert_float_eq(spec->epochs, 3, 0);
    cr_assert_eq(spec->recipe_images, 1280000);
    json_t *written = job_spec_to_json(spec);
    cr_assert_null(json_object_get(written, "source"));
    cr_assert_str_eq(json_string_value(json_object_get(written, "preset")), "surfsara-24k");
    job_spec_destroy(spec);

    /* Where the preset is not to be had, the written document still says it all. */
    struct problems p = {0};
    spec = job_spec_parse(written, NULL, NULL, &p);
    cr_assert_not_null(spec);
    cr_assert_eq(spec->cluster.nodes, 256);
    job_spec_destroy(spec);
    json_decref(written);
}

Test(job_spec, an_unknown_preset_gets_the_nearest_name)
{
    struct problems p = {0};

    cr_assert_null(job_parse("{'preset': 'surfsara24k', 'data': {'train': 'x'}}", &p));
    cr_assert_eq(p.count, 1);
    cr_assert_str_eq(p.items[0].pointer, "/preset");
    cr_assert_str_eq(p.items[0].suggestion, "surfsara-24k");
    problems_clear(&p);
    cr_assert_null(job_parse("{'preset': '../surfsara-24k', 'data': {'train': 'x'}}", &p));
    problems_clear(&p);
}

Test(job_spec, every_preset_is_valid_and_names_its_source)
{
    json_t *list = preset_list(), *entry;
    size_t i;

    cr_assert_eq(json_array_size(list), 13);
    json_array_foreach (list, i, entry) {
        const char *name = json_string_value(json_object_get(entry, "name"));
        char text[256];
        cr_assert_not_null(json_string_value(json_object_get(entry, "description")), "%s", name);
        cr_assert_not_null(json_string_value(json_object_get(entry, "source")), "%s", name);
        cr_assert_null(json_object_get(json_object_get(entry, "document"), "source"), "%s", name);
        snprintf(text, sizeof text, "{'preset': '%s', 'data': {'train': 'x'}}", name);
        job_spec_destroy(job_of(text));
    }
    json_decref(list);
}

/* ---- the schema */

static const json_t *schema_of_row(const json_t *schema, const char *pointer)
{
    char key[64];
    const json_t *value = schema;

    while (*pointer == '/') {
        size_t length = strcspn(pointer + 1, "/");
        snprintf(key, sizeof key, "%.*s", (int)length, pointer + 1);
        value = json_object_get(json_object_get(value, "properties"), key);
        pointer += 1 + length;
    }
    return value;
}

Test(job_spec, schema_lists_every_row_with_a_default_of_its_own)
{
    json_t *schema = job_spec_schema();

    for (size_t i = 0; job_option_at(i); i++) {
        const struct job_option *o = job_option_at(i);
        const json_t *row = schema_of_row(schema, o->pointer);
        json_t *fallback = job_option_default(o);
        cr_assert_not_null(row, "%s", o->pointer);
        cr_assert(o->from_data ? !json_object_get(row, "default")
                               : json_equal(json_object_get(row, "default"), fallback),
                  "%s", o->pointer);
        cr_assert_not_null(json_object_get(row, "type"), "%s", o->pointer);
        json_decref(fallback);
    }
    cr_assert(json_is_false(json_object_get(schema, "additionalProperties")));
    json_decref(schema);
}

Test(job_spec, every_string_key_declares_its_characters)
{
    static const char *const shell[] = {"a;b", "a$(b)", "a`b`", "a\"b", "a'b", "a\\b",  "a>b",
                                        "a<b", "~/a",   "a#b",  "a!b",  "a?b", "a{b,c}"};
    static const char *const control[] = {"a\nb",          "a\x1b[1m", "a\x7f", "a\xc2\x85",
                                          "a\xe2\x80\xae", "a\xff",    ""};
    size_t rows = 0;

    for (size_t i = 0; job_option_at(i); i++) {
        const struct job_option *o = job_option_at(i);
        bool strings = o->type == JOB_OPTION_STRING || o->type == JOB_OPTION_STRINGS ||
                       o->type == JOB_OPTION_MAP;
        cr_assert_eq(strings, o->text != JOB_TEXT_NONE, "%s", o->pointer);
        bool free_text =
            o->text == JOB_TEXT_TITLE || o->text == JOB_TEXT_PATH || o->text == JOB_TEXT_NOTE;
        for (size_t k = 0; strings && k < sizeof shell / sizeof shell[0]; k++)
            cr_assert_eq(job_text_right(o->text, shell[k]), free_text, "%s: %s", o->pointer,
                         shell[k]);
        for (size_t k = 0; k < sizeof control / sizeof control[0]; k++) {
            bool lines = o->text == JOB_TEXT_NOTE && strcmp(control[k], "a\nb") == 0;
            cr_assert_eq(job_text_right(o->text, control[k]), lines, "%s", o->pointer);
        }
        rows += strings;
    }
    cr_assert_geq(rows, 12);
    cr_assert_not(job_text_right(JOB_TEXT_NONE, "a"));
}

/* As the schema's maxLength counts. */
Test(job_spec, the_length_of_a_text_counts_characters)
{
    static const struct {
        const char *key;
        size_t most;
    } texts[] = {
        {"/name", 200 },
        {"/note", 4096},
        {"/tags", 64  },
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const struct job_option *o = job_option_find(texts[i].key);
        for (size_t more = 0; more < 2; more++) {
            char text[2 * 4097 + 1] = "";
            for (size_t n = 0; n < texts[i].most + more; n++)
                strcat(text, o->text == JOB_TEXT_TAG ? "x" : "\xc3\xa9");
            struct problems problems = {0};
            json_t *value = json_string(text);
            if (o->type == JOB_OPTION_STRINGS)
                value = json_pack("[o]", value);
            job_value_check(o, value, &problems);
            cr_assert_eq(problems.count, more, "%s: %zu", o->pointer, texts[i].most + more);
            problems_clear(&problems);
            json_decref(value);
        }
    }
    /* The kernel's limit is one of bytes. */
    char path[2 * 2100 + 1] = "/";
    for (size_t n = 0; n < 2048; n++)
        strcat(path, "\xc3\xa9");
    struct problems problems = {0};
    json_t *value = json_string(path);
    job_value_check(job_option_find("/data/train"), value, &problems);
    cr_assert_eq(problems.count, 1);
    cr_assert_not_null(strstr(problems.items[0].message, "4095 bytes"), "%s",
                       problems.items[0].message);
    problems_clear(&problems);
    json_decref(value);
}

/* The one problem that a document with this cluster.env has; the caller clears it. */
static void refuse_env(json_t *env, struct problems *problems)
{
    json_t *document = document_with("/cluster/env", env);

    *problems = (struct problems){0};
    cr_assert_null(job_spec_parse(document, NULL, NULL, problems));
    cr_assert_eq(problems->count, 1);
    json_decref(document);
}

Test(job_spec, variables_keep_their_order_and_are_found_by_name)
{
    struct job_spec *spec =
        job_of("{'data': {'train': '/x'}, 'cluster': {'env': {'UCX_TLS': 'tcp', 'OMP_WAIT_POLICY': "
               "'active', 'KMP_AFFINITY': 'granularity=fine'}}}");

    cr_assert_eq(spec->cluster.env_count, 3);
    cr_assert_str_eq(spec->cluster.env[0], "UCX_TLS=tcp");
    cr_assert_str_eq(spec->cluster.env[2], "KMP_AFFINITY=granularity=fine");
    cr_assert_null(spec->cluster.env[3]);
    cr_assert_str_eq(job_env_value(spec, "KMP_AFFINITY"), "granularity=fine");
    cr_assert_str_eq(job_env_value(spec, "OMP_WAIT_POLICY"), "active");
    cr_assert_null(job_env_value(spec, "OMP_WAIT"));
    cr_assert_null(job_env_value(spec, "OMP_WAIT_POLICY_2"));
    job_spec_destroy(spec);
}

Test(job_spec, maps_refuse_wrong_names_and_values_by_their_pointer)
{
    static const struct {
        const char *name, *value, *pointer;
    } wrong[] = {
        {"1OMP",         "x",     "/cluster/env/1OMP"        },
        {"OMP-X",        "x",     "/cluster/env/OMP-X"       },
        {"OMP X",        "x",     "/cluster/env/OMP X"       },
        {"OMP=X",        "x",     "/cluster/env/OMP=X"       },
        {"OMP/~X",       "x",     "/cluster/env/OMP~1~0X"    },
        {"OMP\nX",       "x",     "/cluster/env/OMP\nX"      },
        {"OMP_\xc3\xa9", "x",     "/cluster/env/OMP_\xc3\xa9"},
        {"OMP_X$(id)",   "x",     "/cluster/env/OMP_X$(id)"  },
        {"OMP_X",        "$(id)", "/cluster/env/OMP_X"       },
        {"OMP_X",        "a\nb",  "/cluster/env/OMP_X"       },
        {"OMP_X",        "a;b",   "/cluster/env/OMP_X"       },
        {"OMP_X",        "\"a\"", "/cluster/env/OMP_X"       },
        {"OMP_X",        "",      "/cluster/env"             },
        {"",             "x",     "/cluster/env"             },
    };
    struct problems problems;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        refuse_env(json_pack("{s:s}", wrong[i].name, wrong[i].value), &problems);
        cr_assert_str_eq(problems.items[0].pointer, wrong[i].pointer);
        problems_clear(&problems);
    }
    refuse_env(json_pack("{s:i}", "OMP_X", 1), &problems);
    cr_assert_str_eq(problems.items[0].pointer, "/cluster/env");
    problems_clear(&problems);
}

Test(job_spec, maps_are_bounded)
{
    struct problems problems;
    json_t *many = json_object();
    char name[JOB_ENV_NAME_BYTES + 1];

    for (int i = 0; i <= JOB_ENV_MAX; i++) {
        snprintf(name, sizeof name, "OMP_%d", i);
        json_object_set_new(many, name, json_string("x"));
    }
    refuse_env(many, &problems);
    cr_assert_not_null(strstr(problems.items[0].message, "at most 64 names"));
    problems_clear(&problems);
    refuse_env(json_pack("{s:o}", "OMP_X", repeated('x', 1025)), &problems);
    problems_clear(&problems);
    memset(name, 'X', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    refuse_env(json_pack("{s:s}", name, "x"), &problems);
    cr_assert_str_eq(problems.items[0].pointer, "/cluster/env");
    problems_clear(&problems);
}

Test(job_spec, variables_of_loaders_launchers_and_other_keys_are_refused)
{
    static const struct {
        const char *name, *words;
    } refused[] = {
        {"LD_PRELOAD",                  "regardless of job_env_prefixes"},
        {"LD_AUDIT",                    "regardless of job_env_prefixes"},
        {"PATH",                        "regardless of job_env_prefixes"},
        {"UCX_MODULE_DIR",              "regardless of job_env_prefixes"},
        {"UCX_LOG_FILE",                "regardless of job_env_prefixes"},
        {"UCX_GDB_COMMAND",             "regardless of job_env_prefixes"},
        {"OMP_TOOL_LIBRARIES",          "regardless of job_env_prefixes"},
        {"MALLOC_TRACE",                "regardless of job_env_prefixes"},
        {"SLURM_JOB_ID",                "regardless of job_env_prefixes"},
        {"TRAIND_ATTEMPT",              "regardless of job_env_prefixes"},
        {"OMP_NUM_THREADS",             "cluster.threads_per_worker"    },
        {"OPENBLAS_NUM_THREADS",        "cluster.threads_per_worker"    },
        {"OMPI_MCA_btl_tcp_if_include", "set by cluster.interface"      },
    };
    static const char *const taken[] = {
        "OMP_WAIT_POLICY",  "GOMP_SPINCOUNT",   "KMP_BLOCKTIME",         "KMP_LIBRARY",
        "MALLOC_ARENA_MAX", "UCX_TLS",          "OMP_PROC_BIND",         "OPENBLAS_CORETYPE",
        "OMP_PLACES",       "UCX_PROFILE_MODE", "OMPI_MCA_btl_tcp_links"};
    struct problems problems;
    char pointer[64];

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        refuse_env(json_pack("{s:s}", refused[i].name, "x"), &problems);
        snprintf(pointer, sizeof pointer, "/cluster/env/%s", refused[i].name);
        cr_assert_str_eq(problems.items[0].pointer, pointer);
        cr_assert_not_null(strstr(problems.items[0].message, refused[i].words), "%s: %s", pointer,
                           problems.items[0].message);
        problems_clear(&problems);
    }
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        cr_assert_not(job_env_is_refused(taken[i]) || job_env_setter(taken[i]), "%s", taken[i]);
}

Test(job_spec, valid_strings_are_accepted)
{
    static const struct {
        enum job_text kind;
        const char *text;
    } right[] = {
        {JOB_TEXT_TITLE,     "Größe; $5 (a|b) \"c\""              },
        {JOB_TEXT_PATH,      "/data/it's mine; $HOME"               },
        {JOB_TEXT_FILE,      "resnet50-goyal2017"                   },
        {JOB_TEXT_HOST,      "n1.cluster_a:16"                      },
        {JOB_TEXT_INTERFACE, "enp3s0f0.100"                         },
        {JOB_TEXT_INTERFACE, "10.0.0.0/24"                          },
        {JOB_TEXT_NAMES,     "debug,long"                           },
        {JOB_TEXT_FEATURES,  "[rack1*4&rack2*4]|(ib&hdd),gpu:1"     },
        {JOB_TEXT_TIME,      "2-12:30:00"                           },
        {JOB_TEXT_ARGUMENT,  "OMP_PROC_BIND=close a"                },
        {JOB_TEXT_ARGUMENT,  "--mca"                                },
        {JOB_TEXT_VARIABLE,  "OMPI_MCA_btl_tcp_links"               },
        {JOB_TEXT_SETTING,   "granularity=fine,compact 1:2"         },
        {JOB_TEXT_PREFIX,    "/opt/openmpi-4.1.4+gcc"               },
        {JOB_TEXT_PREFIX,    "/opt/a..b"                            },
        {JOB_TEXT_WORDS,     "^openib"                              },
        {JOB_TEXT_NETWORKS,  "eth0,10.0.0.0/24,192.168.0.0/16,mlx:1"},
    };
    static const char *const networks[] = {"10.0.0.0/24$x",   "a/b",          "10.0.0.0/33",
                                           "300.0.0.0/8",     "10.0.0.0/24/", "/etc/passwd",
                                           "eth0,10.0.0.0/ 8"};
    static const char *const folders[] = {"opt", "/opt/..", "/opt/../x", "/..", "/o pt", "/o:p"};

    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        cr_assert(job_text_right(right[i].kind, right[i].text), "%s", right[i].text);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        cr_assert_not(job_text_right(JOB_TEXT_PREFIX, folders[i]), "%s", folders[i]);
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        cr_assert_not(job_text_right(JOB_TEXT_NETWORKS, networks[i]), "%s", networks[i]);
        cr_assert_not(job_text_right(JOB_TEXT_INTERFACE, networks[i]), "%s", networks[i]);
    }
}

Test(job_spec, a_list_of_strings_ends_with_null)
{
    for (int count = 1; count <= 8; count++) {
        char text[300], *end = text;
        end += sprintf(end, "{'data': {'train': 'x'}, 'cluster': {'mpi_args': [");
        for (int i = 0; i < count; i++)
            end += sprintf(end, "%s\"--x\"", i ? ", " : "");
        sprintf(end, "]}}");
        struct job_spec *spec = job_of(text);
        cr_assert_null(spec->cluster.mpi_args[count]);
        job_spec_destroy(spec);
    }
}

static void optimizer_gives(const char *optimizer, double base, enum job_scaling scaling,
                            double weight_decay, double momentum, double eps)
{
    char text[256];

    snprintf(text, sizeof text, "{'data': {'train': 'x'}, 'optimizer': {%s}}", optimizer);
    struct job_spec *spec = job_of(text);
    cr_assert_eq(spec->lr.base, base, "%s", optimizer);
    cr_assert_eq(spec->lr.scaling, scaling, "%s", optimizer);
    cr_assert_eq(spec->optimizer.weight_decay, weight_decay, "%s", optimizer);
    cr_assert_eq(spec->optimizer.momentum, momentum, "%s", optimizer);
    cr_assert_eq(spec->optimizer.eps, eps, "%s", optimizer);
    job_spec_destroy(spec);
}

Test(job_spec, defaults_depend_on_the_optimiser)
{
    optimizer_gives("", 0.1, JOB_SCALING_LINEAR, 5e-5, 0.9, 1e-8);
    optimizer_gives("'name': 'lars'", 0.1, JOB_SCALING_LINEAR, 5e-5, 0.9, 1e-8);
    optimizer_gives("'name': 'sgdw'", 0.1, JOB_SCALING_LINEAR, 5e-4, 0.9, 1e-8);
    optimizer_gives("'name': 'adam'", 0.001, JOB_SCALING_SQRT, 0, 0.9, 1e-8);
    optimizer_gives("'name': 'adamw'", 0.001, JOB_SCALING_SQRT, 0.01, 0.9, 1e-8);
    optimizer_gives("'name': 'rmsprop'", 0.001, JOB_SCALING_SQRT, 0, 0, 1e-8);
    optimizer_gives("'name': 'adagrad'", 0.01, JOB_SCALING_SQRT, 0, 0.9, 1e-10);
    optimizer_gives("'name': 'adadelta'", 1, JOB_SCALING_SQRT, 0, 0.9, 1e-6);
    optimizer_gives("'name': 'adagrad', 'eps': 1e-3, 'weight_decay': 0.1", 0.01, JOB_SCALING_SQRT,
                    0.1, 0.9, 1e-3);
}

Test(job_spec, defaults_depend_on_the_network)
{
    struct job_spec *s = job_of("{'data': {'train': 'synthetic'}, 'model': {'arch': 'cnn'}}");

    cr_assert(s->model.classes == 10 && s->model.image_size == 28 && s->model.dropout == 0.4 &&
              s->data.preprocess == JOB_PREPROCESS_WHOLE && !s->data.augment);
    job_spec_destroy(s);
    s = job_of("{'data': {'train': 'synthetic', 'augment': true}, 'model': {'arch': 'cnn', "
               "'dropout': 0, 'classes': 5}}");
    cr_assert(s->model.classes == 5 && s->model.dropout == 0 && s->data.augment);
    job_spec_destroy(s);
    s = job_of("{'data': {'train': 'synthetic'}}");
    cr_assert(s->model.classes == 1000 && s->model.image_size == 224 && s->model.dropout == 0 &&
              s->model.width == 1 && s->data.preprocess == JOB_PREPROCESS_TPU);
    job_spec_destroy(s);
}

static void model_refused(const char *model, const char *data, const char *pointer,
                          const char *words)
{
    struct problems problems = {0};
    char text[256];

    snprintf(text, sizeof text, "{'data': {'train': 'synthetic'%s}, 'model': {%s}}", data, model);
    cr_assert_null(job_parse(text, &problems), "%s", text);
    const struct problem *p = problem_at(&problems, pointer);
    cr_assert(p && strstr(p->message, words), "%s: %s", text, p ? p->message : "nothing");
    problems_clear(&problems);
}

Test(job_spec, the_network_restricts_size_width_and_dropout)
{
    model_refused("'image_size': 28", "", "/model/image_size", "at least 32");
    model_refused("'arch': 'cnn'", ", 'preprocess': 'tpu'", "/data/preprocess", "\"whole\"");
    model_refused("'arch': 'resnext50_32x4d', 'width': 1.5", "", "/model/width", "groups");
    model_refused("'width': 9", "", "/model/width", "0.0625");
    model_refused("'dropout': 1", "", "/model/dropout", "below 1");
}

/* Each problem of a schedule of sizes, all at once, and the sizes of right ones. */
static void sizes_refused(const char *value, size_t count, const char *words)
{
    struct problems problems = {0};
    char text[320];

    snprintf(text, sizeof text, "{'data': {'train': 'synthetic'}, 'model': {'image_size': %s}}",
             value);
    cr_assert_null(job_parse(text, &problems), "%s", text);
    char *all = problems_to_text(&problems);
    cr_assert_eq(problems.count, count, "%s: %s", value, all);
    cr_assert_not_null(strstr(all, words), "%s: %s", value, all);
    cr_assert(problems_within(&problems, "/model"));
    free(all);
    problems_clear(&problems);
}

Test(job_spec, invalid_sizes_by_epoch_are_refused)
{
    sizes_refused("[]", 1, "1 to 32 sizes, not 0");
    sizes_refused("[[1, 160], [2, 192]]", 1, "from epoch 0 on, not from epoch 1");
    sizes_refused("[[0, 160], [5, 192], [4, 192]]", 1, "goes back to epoch 4 after epoch 5");
    sizes_refused("[[0, 160], [0, 192]]", 1, "epochs must rise");
    sizes_refused("[[0, 192], [5, 160]]", 1, "goes back to 160 pixels after 192");
    sizes_refused("[[0, 192], [5], [6, 20], [-1, 1.5]]", 4, "must be a pair");
    sizes_refused("[[0, 30], [5, 160]]", 1, "at least 32");
    sizes_refused("{'from': 160}", 2, "must be two epochs");
    sizes_refused("{'from': 160, 'to': 192, 'ramp': [7, 6]}", 1, "goes backwards");
    sizes_refused("{'from': 192, 'to': 160, 'ramp': [6, 7]}", 1, "must not shrink");
    sizes_refused("{'from': 150, 'to': 192, 'ramp': [6, 7]}", 1, "a multiple of 32");
    sizes_refused("{'from': 160, 'to': 192, 'ramp': [6, 7], 'multiple': 1}", 1,
                  "makes 33 sizes, more than 32");
    sizes_refused("{'from': 160, 'to': 192, 'ramp': [6, 7], 'by': 1, 'multiple': 0}", 2,
                  "from, to, ramp and multiple only");
    model_refused("'arch': 'cnn', 'image_size': [[0, 28], [1, 32]]", "", "/model/image_size",
                  "one size");
}

static void sizes_are(const char *value, const char *expected, int64_t largest)
{
    char text[320];

    snprintf(text, sizeof text, "{'data': {'train': 'synthetic'}, 'model': {'image_size': %s}}",
             value);
    struct job_spec *spec = job_of(text);
    struct job_sizes list = spec->model.sizes;
    list.ramps = false;
    json_t *json = job_sizes_to_json(&list), *document = job_spec_to_json(spec);
    char *sizes = json_dumps(json, JSON_COMPACT);
    cr_assert_str_eq(sizes, expected);
    cr_assert_eq(spec->model.image_size, largest);
    struct job_spec *again = job_spec_parse(document, NULL, NULL, &(struct problems){0});
    cr_assert(again && !memcmp(&again->model.sizes, &spec->model.sizes, sizeof list));
    free(sizes);
    json_decref(json);
    json_decref(document);
    job_spec_destroy(again);
    job_spec_destroy(spec);
}

Test(job_spec, invalid_batch_schedules_are_refused)
{
    model_refused("'image_size': [[0, 128], [1.5, 160]]}, 'batch_schedule': 'fill', 'lr': {", "",
                  "/batch_schedule", "whole epochs, or set steps_rounding");
    model_refused("'image_size': [[0, 128], [2, 160]]}, 'batch_schedule': 'fill', 'restart': "
                  "{'on_fewer_nodes': 'keep_batch'",
                  "", "/restart/on_fewer_nodes", "must be \"rescale\"");
    model_refused("}, 'batch_schedule': {'from': 1", "", "/batch_schedule", "one of");
}

Test(job_spec, invalid_eval_sizes_and_averages_are_refused)
{
    model_refused("}, 'eval': {'image_size': 31", "", "/eval/image_size", "at least 32");
    model_refused("'arch': 'cnn'}, 'eval': {'image_size': 32", "", "/eval/image_size",
                  "model.image_size with arch");
    model_refused("}, 'eval': {'image_size': 256, 'resize': 240", "", "/eval/resize", "smaller");
    model_refused("}, 'eval': {'resize': 223", "", "/eval/resize", "smaller");
    model_refused("'arch': 'cnn'}, 'eval': {'resize': 32", "", "/eval/resize", "whole");
    model_refused("}, 'ema': {'decay': 1", "", "/ema/decay", "below 1");
    model_refused("}, 'ema': {'decay': 0.9, 'half_life': 100", "", "/ema/half_life",
                  "must be 0 with ema.decay");
    model_refused("}, 'mode': 'eval', 'ema': {'half_life': 100", ", 'eval': 'synthetic'",
                  "/ema/half_life", "mode");
    model_refused("}, 'epochs': 3, 'ema': {'half_life': 100, 'from_epoch': 3", "",
                  "/ema/from_epoch", "before the end");
    model_refused("}, 'epochs': 3, 'ema': {'decay': 0.9, 'from_epoch': 3", "", "/ema/from_epoch",
                  "before the end");
    model_refused("}, 'mode': 'eval', 'ema': {'decay': 0.9", ", 'eval': 'synthetic'", "/ema/decay",
                  "mode");
}

static void average_decays(const char *ema, double decay)
{
    char text[128];

    snprintf(text, sizeof text, "{'data': {'train': 'x'}, 'ema': {%s}}", ema);
    struct job_spec *spec = job_of(text);
    cr_assert_eq(job_spec_averages(spec), decay > 0, "%s", ema);
    cr_assert_float_eq(job_spec_average_decay(spec), decay, 1e-15, "%s", ema);
    job_spec_destroy(spec);
}

Test(job_spec, decay_of_an_average_follows_from_half_life_and_interval)
{
    average_decays("", 0);
    average_decays("'decay': 0.9", 0.9);
    average_decays("'decay': 0.9, 'every': 2", 0.81);
    average_decays("'half_life': 1", 0.5);
    average_decays("'half_life': 100, 'every': 20", 0.870550563296124);
}

Test(job_spec, sizes_by_epoch_are_expanded)
{
    sizes_are("160", "[[0,160]]", 160);
    sizes_are("[[0, 160], [16.5, 192]]", "[[0,160],[16.5,192]]", 192);
    /* FFCV's: half of the way is at epoch 11.5, and the next one begins at 12. */
    sizes_are("{'from': 160, 'to': 192, 'ramp': [6, 17]}", "[[0,160],[12,192]]", 192);
    sizes_are("{'from': 128, 'to': 192, 'ramp': [0, 4], 'multiple': 16}",
              "[[0,128],[1,144],[2,160],[3,176],[4,192]]", 192);
    struct job_spec *s = job_of("{'data': {'train': 'x'}, 'model': {'image_size': {'from': 128, "
                                "'to': 252, 'ramp': [0, 31], 'multiple': 4}}}");
    cr_assert_eq(s->model.sizes.count, JOB_SIZES_MAX);
    cr_assert_eq(s->model.sizes.at[31].size, 252);
    job_spec_destroy(s);
}

Test(job_spec, loss_scale_and_bf16_gradients_need_training_in_bf16)
{
    static const char eval[] = ", 'eval': 'synthetic'}, 'mode': 'eval', 'checkpoint': {";
    static const char bf16[] = "}, 'precision': 'bf16', 'loss_scale': 128, 'comm': {";

    model_refused("}, 'loss_scale': 128, 'comm': {", "", "/loss_scale", "precision to \"bf16\"");
    model_refused("}, 'loss_scale': 0, 'comm': {", "", "/loss_scale", "0");
    model_refused(bf16, eval, "/loss_scale", "no gradients");
    model_refused("}, 'comm': {'dtype': 'bf16'", eval, "/comm/dtype", "no gradients");
    is_taken("'precision': 'bf16', 'loss_scale': 128");
    is_taken("'comm': {'dtype': 'bf16'}");
}

Test(job_spec, bf16_restricts_width_gemm_and_network)
{
    static const char bf16[] = "}, 'precision': 'bf16', 'checkpoint': {";
    char model[128];

    snprintf(model, sizeof model, "'width': 0.75%s", bf16);
    model_refused(model, "", "/model/width", "multiples of 32");
    snprintf(model, sizeof model, "'gemm': 'openblas'%s", bf16);
    model_refused(model, "", "/model/gemm", "fp32");
    snprintf(model, sizeof model, "'arch': 'cnn', 'image_size': 28%s", bf16);
    model_refused(model, ", 'preprocess': 'whole'", "/precision", "not supported");
}

static void core_is(const char *value, int64_t stored)
{
    char text[96];

    snprintf(text, sizeof text, "{'data': {'train': 'x'}, 'comm': {'core': %s}}", value);
    struct job_spec *spec = job_of(text);
    json_t *whole = job_spec_to_json(spec), *wanted = json_loads(value, JSON_DECODE_ANY, NULL);
    cr_expect_eq(spec->comm.core, stored, "%s: %lld", value, (long long)spec->comm.core);
    cr_expect(json_equal(json_object_get(json_object_get(whole, "comm"), "core"), wanted), "%s",
              value);
    json_decref(wanted);
    json_decref(whole);
    job_spec_destroy(spec);
}

static void core_refused(const char *value, const char *suggestion)
{
    const struct job_option *o = job_option_find("/comm/core");
    struct problems problems = {0};
    char words[128];
    json_t *v = json_loads(value, JSON_DECODE_ANY, NULL);

    snprintf(words, sizeof words,
             "must be an integer from 0 to 1023, or \"auto\", or \"none\", not %s", value);
    cr_assert_not(job_value_check(o, v, &problems), "%s", value);
    cr_expect_str_eq(problems.items[0].message, words);
    const char *near = problems.items[0].suggestion;
    cr_expect(suggestion ? near && strcmp(near, suggestion) == 0 : !near, "%s: %s", value,
              near ? near : "nothing");
    problems_clear(&problems);
    json_decref(v);
}

Test(job_spec, an_integer_key_may_accept_words)
{
    core_is("\"auto\"", JOB_CORE_AUTO);
    core_is("\"none\"", JOB_CORE_NONE);
    core_is("0", 0);
    core_is("1023", 1023);
    core_refused("\"non\"", "none");
    core_refused("\"3\"", NULL);
    core_refused("-1", NULL);
    core_refused("-2", NULL);
    core_refused("1024", NULL);
    core_refused("1.5", NULL);
    core_refused("[\"auto\"]", NULL);
}
