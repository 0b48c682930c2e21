/* --set KEY=VALUE on a job document, and that each command can be completed. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "client/document.h"

static void expect_change(const char *change, const char *want)
{
    json_t *document = json_loads("{\"lr\": {\"base\": 0.1, \"power\": 2}}", 0, NULL);
    struct error e = {0};

    cr_expect_eq(document_set(document, change, &e), 0, "%s: %s", change, e.text);
    char *text = json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(3));
    cr_expect_str_eq(text, want, "%s", change);
    free(text);
    json_decref(document);
}

Test(change, keys_have_dots_or_slashes)
{
    expect_change("lr.base=0.2", "{\"lr\":{\"base\":0.2,\"power\":2}}");
    expect_change("/lr/base=0.2", "{\"lr\":{\"base\":0.2,\"power\":2}}");
    expect_change("eval.batch=8", "{\"lr\":{\"base\":0.1,\"power\":2},\"eval\":{\"batch\":8}}");
    expect_change("steps=null", "{\"lr\":{\"base\":0.1,\"power\":2},\"steps\":null}");
    expect_change("lr.milestones=[1,2]",
                  "{\"lr\":{\"base\":0.1,\"power\":2,\"milestones\":[1,2]}}");
}

Test(change, strings_need_no_quotes)
{
    expect_change("name=a=b", "{\"lr\":{\"base\":0.1,\"power\":2},\"name\":\"a=b\"}");
    expect_change("name=2024", "{\"lr\":{\"base\":0.1,\"power\":2},\"name\":\"2024\"}");
    expect_change("name=\"x y\"", "{\"lr\":{\"base\":0.1,\"power\":2},\"name\":\"x y\"}");
    expect_change("lr.decay=cosine", "{\"lr\":{\"base\":0.1,\"power\":2,\"decay\":\"cosine\"}}");
}

Test(change, what_is_wrong_is_refused_in_words)
{
    static const struct {
        const char *change, *words;
    } wrong[] = {
        {"lr.base",         "is not KEY=VALUE"    },
        {"=1",              "is not KEY=VALUE"    },
        {"lr.bse=1",        "did you mean lr.base"},
        {"lr=1",            "is a group of keys"  },
        {"lr.base=fast",    "must be a number"    },
        {"lr.decay=cosin",  "did you mean cosine" },
        {"qqqqqqqqqqqqq=1", "there is no key"     },
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        json_t *document = json_object();
        struct error e = {0};
        cr_expect_eq(document_set(document, wrong[i].change, &e), -ERR_USAGE);
        cr_expect(strstr(e.text, wrong[i].words), "%s: %s", wrong[i].change, e.text);
        cr_expect_eq(json_object_size(document), 0);
        json_decref(document);
    }
}

Test(complete, each_command_and_key_option_names_its_argument)
{
    for (size_t i = 0; cmd_at(i); i++) {
        const struct cmd *cmd = cmd_at(i);
        cr_expect(cmd->completion || !cmd->operands[1], "%s does not say what its operands are",
                  cmd->name);
        for (size_t k = 0; k < CMD_OPTIONS_MAX && cmd->options[k].name; k++)
            if (cmd->options[k].value && strcmp(cmd->options[k].value, "KEY=VALUE") == 0)
                cr_expect_str_eq(cmd->options[k].completion, "key");
    }
}
