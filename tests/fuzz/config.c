/* traind.conf: what is taken is in the range that the table of keys states. */
#include "daemon/config.h"

#include <math.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static void config_judge(const struct config *c)
{
    const struct config_key *key;

    for (size_t i = 0; (key = config_key_at(i)); i++) {
        const void *field = (const char *)c + key->offset;
        double value;
        if ((key->kind != 'i' && key->kind != 'd') || !(c->given >> i & 1))
            continue;
        if (key->kind == 'i')
            value = (double)*(const int64_t *)field;
        else
            value = *(const double *)field * (double)(key->over ? key->over : 1) /
                    (double)(key->times ? key->times : 1);
        value = round(value * 1e6) / 1e6;
        FUZZ_CHECK(value >= (double)key->minimum && value <= (double)key->maximum, "%s is %g",
                   key->name, value);
    }
    FUZZ_CHECK(c->listen && c->socket && c->state && c->jobs.slots > 0, "a setting is not set");
}

int fuzz_config(const uint8_t *data, size_t bytes)
{
    const char *path = fuzz_file("traind.conf", data, bytes);
    struct config c = {0};
    struct error e = {0};

    if (config_load(&c, path, &e) == 0) {
        config_judge(&c);
        config_check(&c, &e);
    } else {
        FUZZ_CHECK(e.code && *e.text, "refused without a word");
    }
    config_clear(&c);
    return 0;
}
