#include "daemon/notice/address.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/notice/notice_settings.h"
#include "daemon/notice/post.h"

static union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} address;

static const struct sockaddr *address_of(const char *text)
{
    memset(&address, 0, sizeof address);
    address.any.sa_family = strchr(text, ':') ? AF_INET6 : AF_INET;
    cr_assert_eq(
        inet_pton(address.any.sa_family, text,
                  strchr(text, ':') ? (void *)&address.v6.sin6_addr : (void *)&address.v4.sin_addr),
        1, "%s", text);
    return &address.any;
}

Test(address, private_and_special_addresses_are_not_public)
{
    static const char *const inside[] = {"0.0.0.0",
                                         "0.1.2.3",
                                         "10.0.0.1",
                                         "10.255.255.255",
                                         "100.64.0.1",
                                         "100.127.255.255",
                                         "127.0.0.1",
                                         "127.255.255.255",
                                         "169.254.169.254",
                                         "172.16.0.1",
                                         "172.31.255.255",
                                         "192.0.0.1",
                                         "192.0.2.1",
                                         "192.168.0.1",
                                         "198.18.0.1",
                                         "198.19.255.255",
                                         "198.51.100.1",
                                         "203.0.113.9",
                                         "224.0.0.1",
                                         "239.255.255.255",
                                         "240.0.0.1",
                                         "255.255.255.255",
                                         "::",
                                         "::1",
                                         "::7f00:1",
                                         "::ffff:127.0.0.1",
                                         "::ffff:10.1.2.3",
                                         "64:ff9b::7f00:1",
                                         "64:ff9b:1::1",
                                         "100::1",
                                         "2001::1",
                                         "2001:db8::1",
                                         "2002:a00:1::",
                                         "2002:7f00:1::1",
                                         "fc00::1",
                                         "fd00:ec2::254",
                                         "fe80::1",
                                         "fec0::1",
                                         "ff02::1",
                                         "3fff::1",
                                         "4000::1"};
    static const char *const outside[] = {
        "1.1.1.1",        "9.255.255.255",    "11.0.0.0",        "100.63.255.255",
        "100.128.0.0",    "172.15.255.255",   "172.32.0.0",      "192.167.255.255",
        "192.169.0.0",    "223.255.255.255",  "2606:4700::1111", "2a00::1",
        "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "2001:4860::8888"};
    struct sockaddr local = {.sa_family = AF_UNIX};

    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++)
        cr_assert_not(address_is_public(address_of(inside[i])), "%s", inside[i]);
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++)
        cr_assert(address_is_public(address_of(outside[i])), "%s", outside[i]);
    cr_assert_not(address_is_public(&local));
}

Test(address, a_list_allows_networks_addresses_and_hosts)
{
    static const char list[] =
        "10.1.0.0/16, fd00::/8 127.0.0.1\tchat.internal:8443 ci ::ffff:192.168.7.0/120";
    struct error e;

    cr_assert_eq(address_list_check(list, &e), 0);
    cr_assert_eq(address_list_check(NULL, &e), 0);
    cr_assert(address_is_allowed(list, address_of("10.1.255.255")));
    cr_assert_not(address_is_allowed(list, address_of("10.2.0.0")));
    cr_assert(address_is_allowed(list, address_of("::ffff:10.1.0.1")));
    cr_assert(address_is_allowed(list, address_of("fdff::1")));
    cr_assert_not(address_is_allowed(list, address_of("fc00::1")));
    cr_assert(address_is_allowed(list, address_of("127.0.0.1")));
    cr_assert_not(address_is_allowed(list, address_of("127.0.0.2")));
    cr_assert(address_is_allowed(list, address_of("192.168.7.255")));
    cr_assert_not(address_is_allowed(list, address_of("192.168.8.0")));
    cr_assert_not(address_is_allowed(NULL, address_of("127.0.0.1")));
    cr_assert(address_host_is_allowed(list, "chat.internal", 8443));
    cr_assert_not(address_host_is_allowed(list, "chat.internal", 443));
    cr_assert(address_host_is_allowed(list, "ci", 1));
    cr_assert_not(address_host_is_allowed(list, "c", 1));
    cr_assert_not(address_host_is_allowed(list, "127.0.0.1", 1));
}

Test(address, malformed_entries_are_named)
{
    static const char *const bad[] = {
        "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "fd00::/129", "1.2.3",      "-x", "x:0",
        "x:99999",     "x:y",       "x/8",         ":80",        "10.0.0.256", "*"};
    struct error e;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert_lt(address_list_check(bad[i], &e), 0, "%s", bad[i]);
        cr_assert_not_null(strstr(e.text, bad[i]), "%s", e.text);
    }
}

Test(address, the_signature_is_hmac_sha256)
{
    char signature[POST_SIGNATURE_BYTES];

    post_sign("Jefe", "1789", "{}", 2, signature);
    /* printf '1789.{}' | openssl dgst -sha256 -hmac Jefe */
    cr_assert_str_eq(signature,
                     "v1=f015344b9863c356bae6047b0b366aa63b94662b62eb9bd0be6fa7d0fac85611");
}

Test(address, a_secret_is_for_its_host_and_a_rule_has_its_own)
{
    struct notice_admin_rules rules;
    struct notice_secrets secrets;
    struct error e;
    static const char json[] = "[{\"to\": \"https://a/x\", \"secret\": \"own\", \"by\": \"eve\"}]";

    cr_assert_eq(notice_admin_rules_parse(json, sizeof json - 1, "f", &rules, &e), 0, "%s", e.text);
    cr_assert_eq(notice_secrets_parse("# remark\n\n a  first\r\nb second\n", "f", &secrets, &e), 0);
    cr_assert_str_eq(notice_secret_of(&rules, &secrets, "https://a/x"), "own");
    cr_assert_str_eq(notice_secret_of(&rules, &secrets, "https://A:8/y"), "first");
    cr_assert_str_eq(notice_secret_of(&rules, &secrets, "http://b/"), "second");
    cr_assert_null(notice_secret_of(&rules, &secrets, "https://c/"));
    cr_assert(notice_admin_rule_is_for(&rules.items[0], "token:eve"));
    cr_assert(notice_admin_rule_is_for(&rules.items[0], "user:eve"));
    cr_assert_not(notice_admin_rule_is_for(&rules.items[0], "token:eves"));
    cr_assert_not(notice_admin_rule_is_for(&rules.items[0], NULL));
    notice_secrets_clear(&secrets);
    cr_assert_eq(notice_secrets_parse("a one\n* others\n", "f", &secrets, &e), 0);
    cr_assert_str_eq(notice_secret_of(&rules, &secrets, "https://c/"), "others");
    notice_secrets_clear(&secrets);
    cr_assert_lt(notice_secrets_parse("a one two\n", "f", &secrets, &e), 0);
    cr_assert_null(strstr(e.text, "two"), "the message shows a secret");
    notice_secrets_clear(&secrets);
    notice_admin_rules_clear(&rules);
}
