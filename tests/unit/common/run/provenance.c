#include <criterion/criterion.h>
#include <string.h>

#include "common/run/provenance.h"

static json_t *provenance_parse(const char *text)
{
    json_t *value = json_loads(text, 0, NULL);
    cr_assert_not_null(value, "%s", text);
    return value;
}

static json_t *differences_of(const char *then, const char *now)
{
    json_t *a = then ? provenance_parse(then) : NULL, *b = now ? provenance_parse(now) : NULL;
    const json_t *both[] = {a, b};
    json_t *found = provenance_differences(both, 2);

    json_decref(a);
    json_decref(b);
    return found;
}

/* {"what": ..., "values": [then, now]} of the only difference. */
static void one_difference(const char *then, const char *now, const char *what, const char *was,
                           const char *is, int may)
{
    json_t *found = differences_of(then, now);
    const char *name, *words, *first, *second;
    int bits;

    cr_assert_eq(json_array_size(found), 1, "%s", json_dumps(found, 0));
    cr_assert_eq(json_unpack(json_array_get(found, 0), "{s:s, s:s, s:[s, s], s:b}", "what", &name,
                             "words", &words, "values", &first, &second, "may_change_bits", &bits),
                 0);
    cr_assert_str_eq(name, what);
    cr_assert_str_eq(first, was);
    cr_assert_str_eq(second, is);
    cr_assert_eq(bits, may);
    cr_assert(*words);
    json_decref(found);
}

Test(provenance, differences_are_listed)
{
    one_difference("{\"world_size\": 2, \"winograd\": \"\"}", "{\"world_size\": 4}", "world_size",
                   "2", "4", 1);
    one_difference("{\"gradients\": null}", "{\"gradients\": \"memory\"}", "gradients", "none",
                   "memory", 1);
    one_difference("{\"data\": {\"train\": {\"changed\": 1795290550.25}}}",
                   "{\"data\": {\"train\": {\"changed\": 1795290551.25}}}", "data.train.changed",
                   "2026-11-21 19:49:10 UTC", "2026-11-21 19:49:11 UTC", 1);
}

Test(provenance, differences_between_machines_are_listed)
{
    one_difference("{\"machines\": [{\"cpu\": \"A\"}, {\"cpu\": \"B\"}]}",
                   "{\"machines\": [{\"cpu\": \"A\"}]}", "machines.cpu", "A, B", "A", 1);
    one_difference("{\"machines\": [{\"kernel\": \"Linux 6\"}, {\"kernel\": \"Linux 6\"}]}",
                   "{\"machines\": [{\"kernel\": \"Linux 7\"}]}", "machines.kernel", "Linux 6",
                   "Linux 7", 0);
    one_difference("{\"machines\": [{\"environment\": {\"OMP_NUM_THREADS\": \"2\"}}]}",
                   "{\"machines\": [{\"environment\": {}}]}",
                   "machines.environment.OMP_NUM_THREADS", "2", "not there", 1);
    one_difference("{\"machines\": [{\"libraries\": {\"libm.so.6\": \"ab\"}}]}",
                   "{\"machines\": [{\"libraries\": {\"libm.so.6\": \"cd\"}}]}",
                   "machines.libraries.libm.so.6", "ab", "cd", 1);
}

Test(provenance, processor_features_that_some_lack_are_listed)
{
    one_difference("{\"machines\": [{\"flags\": \"fpu avx avx2\"}]}",
                   "{\"machines\": [{\"flags\": \"fpu avx avx2 avx512f amx_tile\"}]}",
                   "machines.flags", "none", "avx512f amx_tile", 1);
    one_difference("{\"machines\": [{\"flags\": \"fpu avx\"}, {\"flags\": \"fpu sse\"}]}",
                   "{\"machines\": [{\"flags\": \"fpu  avx avx\"}]}", "machines.flags", "sse",
                   "none", 1);
}

/* train-worker --provenance knows no ranks, and an older run may lack a key. */
Test(provenance, values_that_one_run_lacks_are_not_differences)
{
    static const char *const pairs[][2] = {
        {"{\"world_size\": 2}",                                 "{}"                                },
        {"{\"machines\": [{\"cpu\": \"A\", \"ranks\": 2}]}",    "{\"machines\": [{\"cpu\": \"A\"}]}"},
        {"{\"machines\": [{\"environment\": {\"A\": \"2\"}}]}", "{\"machines\": [{}]}"              },
        {"{\"world_size\": 2}",                                 NULL                                },
        {NULL,                                                  NULL                                },
    };

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        json_t *found = differences_of(pairs[i][0], pairs[i][1]);
        cr_assert_eq(json_array_size(found), 0, "%zu: %s", i, json_dumps(found, 0));
        json_decref(found);
    }
}

/* Workers may have written anything. */
Test(provenance, takes_any_json)
{
    static const char *const odd[] = {"[]", "{\"machines\": 7}", "{\"machines\": [1, null, [[]]]}",
                                      "{\"machines\": [{\"libraries\": 3, \"environment\": [1]}]}",
                                      "{\"data\": \"x\", \"world_size\": {\"a\": [1]}}"};

    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        json_decref(differences_of(odd[i], "{\"machines\": [{\"libraries\": {\"a\": \"b\"}}]}"));
}

Test(provenance, takes_the_last_attempt_with_a_result)
{
    json_t *file =
        provenance_parse("{\"attempts\": [{\"attempt\": 1, \"result\": {}}, {\"attempt\": 2, "
                         "\"result\": {}}, {\"attempt\": 3, \"result\": null}]}");
    const json_t *attempt = provenance_attempt(file);

    cr_assert_eq(json_integer_value(json_object_get(attempt, "attempt")), 2);
    json_decref(file);
    file = provenance_parse("{\"attempts\": [{\"attempt\": 1}, {\"attempt\": 2}]}");
    attempt = provenance_attempt(file);
    cr_assert_eq(json_integer_value(json_object_get(attempt, "attempt")), 2);
    json_decref(file);
    cr_assert_null(provenance_attempt(NULL));
}
