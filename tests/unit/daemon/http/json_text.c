/* JSON written as text: read back by jansson it is what went in. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/http/json_text.h"

static json_t *parsed(struct json_text *t)
{
    json_error_t where;
    json_t *json = json_loadb(t->out.data, t->out.bytes, JSON_REJECT_DUPLICATES, &where);

    cr_assert_not(t->failed || t->out.failed);
    cr_assert_not_null(json, "%s: %.*s", where.text, (int)t->out.bytes, t->out.data);
    json_text_clear(t);
    return json;
}

static void comes_back(void (*write)(struct json_text *t, const char *key, double value),
                       double value, double tolerance)
{
    struct json_text t = JSON_TEXT;

    json_text_open(&t, NULL, '{');
    write(&t, "x", value);
    json_text_close(&t, '}');
    json_t *json = parsed(&t);
    json_t *x = json_object_get(json, "x");
    cr_assert(json_is_real(x), "%.17g", value);
    cr_expect_leq(fabs(json_real_value(x) - value), tolerance * fabs(value), "%.17g became %.17g",
                  value, json_real_value(x));
    json_decref(json);
}

static void real_comes_back(double value, double tolerance)
{
    comes_back(json_text_real, value, tolerance);
}

static void is_text(struct json_text *t, const char *expected)
{
    cr_assert_not(t->failed || t->out.failed);
    cr_expect(t->out.bytes == strlen(expected) && memcmp(t->out.data, expected, t->out.bytes) == 0,
              "%.*s", (int)t->out.bytes, t->out.data);
    json_text_clear(t);
}

Test(json_text, rounded_numbers_keep_twelve_digits)
{
    struct json_text t = JSON_TEXT;

    srand(2);
    for (int i = 0; i < 100000; i++) {
        double x = (double)(rand() - RAND_MAX / 2);
        comes_back(json_text_rounded, x * pow(10, rand() % 40 - 25), 5e-12);
    }
    for (int n = -30; n < 30; n++) {
        comes_back(json_text_rounded, pow(10, n), 1e-15);
        comes_back(json_text_rounded, nextafter(pow(10, n), 0), 1e-15);
    }
    json_text_open(&t, NULL, '[');
    json_text_rounded(&t, NULL, 2.0 / 3);
    json_text_rounded(&t, NULL, -200.0 / 3);
    json_text_rounded(&t, NULL, 0);
    json_text_rounded(&t, NULL, 1);
    json_text_rounded(&t, NULL, 0.000123);
    json_text_rounded(&t, NULL, 2e20 / 3);
    json_text_rounded(&t, NULL, NAN);
    json_text_close(&t, ']');
    is_text(&t, "[0.666666666667,-66.6666666667,0.0,1.0,0.000123,6.66666666667e+19,null]");
}

Test(json_text, reals_come_back)
{
    static const double short_ones[] = {
        0,   -0.0,       1,    5,       0.05,      -0.05, 100,          1e6, 1795284070.301877,
        0.1, 2.29797669, 1e-9, 123.456, -7.000001, 1e9,   0.00555555556};
    static const double long_ones[] = {
        1.0 / 3, 1e300, 1e-300, 2.3e-308, 1e16, -1e17, 9007199254740993.0, 1.7e308};

    for (size_t i = 0; i < sizeof short_ones / sizeof short_ones[0]; i++)
        real_comes_back(short_ones[i], 0);
    for (size_t i = 0; i < sizeof long_ones / sizeof long_ones[0]; i++)
        real_comes_back(long_ones[i], 1e-15);
    srand(1);
    for (int i = 0; i < 100000; i++) {
        double x = (double)(rand() - RAND_MAX / 2);
        real_comes_back(x / 1e6, 0);
        real_comes_back(x / pow(10, rand() % 20), 1e-15);
    }
}

Test(json_text, members_of_every_kind)
{
    struct json_text t = JSON_TEXT;

    json_text_open(&t, NULL, '{');
    json_text_integer(&t, "i", INT64_MIN);
    json_text_integer(&t, "zero", 0);
    json_text_real(&t, "half", 0.5);
    json_text_real(&t, "none", NAN);
    json_text_string(&t, "no", NULL);
    json_text_open(&t, "list", '[');
    json_text_string(&t, NULL, "a");
    json_text_open(&t, NULL, '{');
    json_text_close(&t, '}');
    json_text_open(&t, NULL, '{');
    json_text_close(&t, '}');
    json_text_close(&t, ']');
    json_text_value(&t, "tree", json_pack("[i]", 3));
    json_text_value(&t, "nothing", NULL);
    json_text_close(&t, '}');
    json_text_end(&t);
    is_text(&t, "{\"i\":-9223372036854775808,\"zero\":0,\"half\":0.5,\"none\":null,\"no\":null,"
                "\"list\":[\"a\",{},{}],\"tree\":[3],\"nothing\":null}\n");
}

Test(json_text, strings_are_escaped_and_bad_utf8_is_null)
{
    static const char all[] = "\001\002\b\t\n\f\r\x1f \"quoted\" back\\slash \x7f";
    struct json_text t = JSON_TEXT;

    json_text_open(&t, NULL, '{');
    json_text_string(&t, "a", all);
    json_text_string(&t, "b", "Z\xc3\xbcrich");
    json_text_string(&t, "c", "cut \xc3");
    json_text_close(&t, '}');
    json_t *json = parsed(&t);
    cr_expect_str_eq(json_string_value(json_object_get(json, "a")), all);
    cr_expect_str_eq(json_string_value(json_object_get(json, "b")), "Z\xc3\xbcrich");
    cr_expect(json_is_null(json_object_get(json, "c")));
    json_decref(json);
}

Test(json_text, documents_lose_the_space_between_tokens_only)
{
    struct json_text t = JSON_TEXT;

    json_text_open(&t, NULL, '{');
    json_text_raw(&t, "d",
                  "{\n  \"a b\": [1, 2.5e-3 ,true],\n  \"c\": \"x  \\\" y \\\\\", \"e\": {}\n}\n");
    json_text_raw(&t, "n", NULL);
    json_text_close(&t, '}');
    is_text(&t, "{\"d\":{\"a b\":[1,2.5e-3,true],\"c\":\"x  \\\" y \\\\\",\"e\":{}},\"n\":null}");
}
