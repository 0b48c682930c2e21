#include "common/notify/target.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/notify/rule.h"

static const char *target_refusal(const char *text)
{
    struct notice_target t;
    const char *why = NULL;

    return notice_target_parse(text, &t, &why) ? NULL : why;
}

Test(target, urls_and_addresses_are_taken_apart)
{
    static const struct {
        const char *text, *host;
        int port;
    } good[] = {
        {"https://Example.ORG/a?b=c",         "example.org",      443 },
        {"http://h",                          "h",                80  },
        {"https://h:8443?x",                  "h",                8443},
        {"HTTP://[::1]:8080/",                "::1",              8080},
        {"https://127.1/%20",                 "127.1",            443 },
        {"mailto:eve.b+x_1@mail.example.org", "mail.example.org", 0   },
    };
    struct notice_target t;
    const char *why;

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        cr_assert(notice_target_parse(good[i].text, &t, &why), "%s: %s", good[i].text, why);
        cr_assert_str_eq(t.host, good[i].host);
        cr_assert_eq(t.port, good[i].port, "%s: %d", good[i].text, t.port);
    }
    cr_assert(notice_target_parse("mailto:a@b", &t, &why));
}

Test(target, ambiguous_targets_are_refused)
{
    static const char *const bad[] = {"",
                                      "example.org",
                                      "ftp://h/",
                                      "file:///etc/passwd",
                                      "https://",
                                      "https:///x",
                                      "https://h:0/",
                                      "https://h:65536/",
                                      "https://h:/",
                                      "https://h:8x/",
                                      "https://[::1",
                                      "https://[x]/",
                                      "https://a b/",
                                      "https://h/a b",
                                      "https://h/\r\nX: y",
                                      "https://h/#x",
                                      "https://h\\x",
                                      "https://-h/",
                                      "https://h/\xc3\xa9",
                                      "mailto:",
                                      "mailto:a",
                                      "mailto:@b",
                                      "mailto:-oQ@b",
                                      "mailto:a@-b",
                                      "mailto:a@b,c@d",
                                      "mailto:a@b\nBcc: c@d",
                                      "mailto:a b@c",
                                      "mailto:\"a\"@b",
                                      "gopher://h/"};
    char text[1200];

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_assert_not_null(target_refusal(bad[i]), "%s is taken", bad[i]);
    cr_assert_not_null(strstr(target_refusal("https://u:p@h/"), "password"));
    memset(text, 'x', sizeof text);
    memcpy(text, "https://h/", 10);
    text[1024] = '\0';
    cr_assert_null(target_refusal(text));
    text[1024] = 'x';
    text[1025] = '\0';
    cr_assert_not_null(target_refusal(text));
}

Test(target, rules_survive_the_way_to_json_and_back)
{
    json_t *list = json_loads("[{\"to\": \"mailto:a@b\"}, {\"to\": \"https://h\", \"on\": "
                              "[\"straggler\", \"failed\"], \"format\": \"text\"}]",
                              0, NULL);
    struct problems problems = {0};
    struct notice_rules rules;

    cr_assert(notice_rules_check(list, "/notify", &problems));
    notice_rules_read(list, &rules);
    cr_assert_eq(rules.at[0].kinds, NOTICE_DEFAULT_KINDS);
    cr_assert_eq(rules.at[1].kinds, NOTICE_BIT(NOTICE_FAILED) | NOTICE_BIT(NOTICE_STRAGGLER));
    json_t *again = notice_rules_to_json(&rules);
    char *text = json_dumps(again, JSON_COMPACT);
    cr_assert_str_eq(text,
                     "[{\"to\":\"mailto:a@b\",\"on\":[\"succeeded\",\"failed\",\"cancelled\"],"
                     "\"format\":\"json\"},{\"to\":\"https://h\",\"on\":[\"failed\","
                     "\"straggler\"],\"format\":\"text\"}]");
    free(text);
    json_decref(again);
    json_decref(list);
    notice_rules_clear(&rules);
}
