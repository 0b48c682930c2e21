/* The administrator's rules, their secrets, and notify_allow: what is taken has right targets and
 * kinds, and survives the way to JSON and back. */
#include <stdlib.h>
#include <string.h>

#include "common/notify/target.h"
#include "daemon/notice/address.h"
#include "daemon/notice/notice_settings.h"
#include "tests/fuzz/fuzz.h"

static void notices_judge_rules(const char *text, size_t bytes)
{
    struct notice_admin_rules rules;
    struct notice_target target;
    struct error e = {0};
    const char *why;

    if (notice_admin_rules_parse(text, bytes, "rules", &rules, &e)) {
        FUZZ_CHECK(e.code && *e.text, "refused without a word");
        return;
    }
    for (size_t i = 0; i < rules.count; i++) {
        const struct notice_rule *r = &rules.items[i].rule;
        FUZZ_CHECK(notice_target_parse(r->to, &target, &why), "%s %s", r->to, why);
        FUZZ_CHECK(strpbrk(r->to, "\r\n \"") == NULL && *target.host != '-', "%s", r->to);
        FUZZ_CHECK(r->kinds && r->kinds < NOTICE_BIT(NOTICE_RULE_KINDS), "kinds %u", r->kinds);
        FUZZ_CHECK(r->format < NOTICE_FORMATS, "format %d", (int)r->format);
    }
    notice_admin_rules_clear(&rules);
}

int fuzz_notices(const uint8_t *data, size_t bytes)
{
    char *text = fuzz_text(data, bytes);
    struct notice_admin_rules none = {0};
    struct notice_secrets secrets;
    struct error e = {0};

    notices_judge_rules(text, bytes);
    if (notice_secrets_parse(text, "secrets", &secrets, &e) == 0)
        for (size_t i = 0; i < secrets.count; i++)
            FUZZ_CHECK(*secrets.items[i].host && *secrets.items[i].secret, "an empty secret");
    notice_secret_of(&none, &secrets, text);
    notice_secrets_clear(&secrets);
    if (address_list_check(text, &e) == 0)
        address_host_is_allowed(text, "example.org", 443);
    free(text);
    return 0;
}
