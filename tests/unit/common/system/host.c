/* Slurm's lists of hosts. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "common/system/host.h"

static void hostlist_position(const char *list, const char *name, int expected, int of)
{
    int count, found = host_list_place(list, name, &count);

    cr_expect_eq(found, expected, "%s in %s: %d", name, list, found);
    if (of)
        cr_expect_eq(count, of, "%s has %d", list, count);
}

Test(hostlist, names_and_ranges)
{
    hostlist_position("n1", "n1", 0, 1);
    hostlist_position("n1,login,n7", "n7", 2, 3);
    hostlist_position("n[1-2]", "n2", 1, 2);
    hostlist_position("n[1-3,7,10-11]", "n10", 4, 6);
    hostlist_position("a[1-2],b3,c[5]-x", "c5-x", 3, 4);
    hostlist_position("n[008-011]", "n010", 2, 4);
    hostlist_position("n[8-11]", "n10", 2, 4);
    hostlist_position("n[1-256]", "n256", 255, 256);
    hostlist_position("n[1-3]", "n4", -1, 3);
    hostlist_position("n[08-09]", "n8", -1, 2);
    hostlist_position("n[1-2][3-4]", "n14", 1, 4);
    hostlist_position("r[1-2]n[0-9]-ib,login", "r2n9-ib", 19, 21);
    hostlist_position("[1-3]", "2", 1, 3);
}

Test(hostlist, what_is_none)
{
    hostlist_position("", "n1", -1, 0);
    hostlist_position("n[1-", "n1", -1, 0);
    hostlist_position("n[]", "n", -1, 0);
    hostlist_position("n[a]", "na", -1, 0);
    hostlist_position("n[3-1]", "n1", -1, 0);
    hostlist_position(",n1", "n1", -1, 0);
    hostlist_position("n[1;rm]", "n1", -1, 0);
}

static void hostlist_is(const char *list, const char *hosts, const char *wrong)
{
    char text[256] = "", words[HOST_LIST_WRONG_BYTES], *found[12] = {NULL};
    size_t count = host_list_expand(list, 12, found, words);

    for (size_t i = 0; i < 12; i++) {
        if (i < count)
            strcat(strcat(text, *text ? " " : ""), found[i]);
        free(found[i]);
    }
    cr_expect_str_eq(text, hosts, "%s", list);
    cr_expect(*wrong ? strstr(words, wrong) != NULL : !*words, "%s: %s", list, words);
}

Test(hostlist, hosts_in_order)
{
    hostlist_is("gpu[01-04,07]-ib", "gpu01-ib gpu02-ib gpu03-ib gpu04-ib gpu07-ib", "");
    hostlist_is("n[9-11],n[098-101]", "n9 n10 n11 n098 n099 n100 n101", "");
    hostlist_is("r[1-2]n[7,9]:4,x", "r1n7:4 r1n9:4 r2n7:4 r2n9:4 x", "");
    hostlist_is("n[0]", "n0", "");
}

Test(hostlist, what_is_wrong_is_named)
{
    static const char *const wrong[][2] = {
        {"n[5-1]",                                           "the range 5-1 runs backwards"            },
        {"n[1-3",                                            "the bracket of \"n[1-3\" is not closed"  },
        {"a,n[1-2]m[4",                                      "the bracket of \"m[4\" is not closed"    },
        {"n[1-13]",                                          "names more than 12 hosts"                },
        {"n[0-999999999][0-999999999]",                      "names more than 12 hosts"                },
        {"n[]",                                              "\"\" between brackets is not a number"   },
        {"n[1-2,]",                                          "\"\" between brackets is not a number"   },
        {"n[a-c]",                                           "\"a-c\" between brackets is not a number"},
        {"n[1-]",                                            "\"1-\" between brackets"                 },
        {"n[-3]",                                            "\"-3\" between brackets"                 },
        {"n[1-2-3]",                                         "\"1-2-3\" between brackets"              },
        {"n[1[2]]",                                          "\"1[2\" between brackets"                },
        {"n[1234567890]",                                    "at most 9 digits"                        },
        {"n[000000000000000000000000000000000000000000001]", "at most 9 digits"                        },
        {"a,,b",                                             "a name of it is empty"                   },
        {"a,",                                               "a name of it is empty"                   },
        {"",                                                 "a name of it is empty"                   },
    };
    char longest[2000] = "";

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        hostlist_is(wrong[i][0], "", wrong[i][1]);
    for (int i = 0; i < 300; i++)
        strcat(longest, "[100]");
    hostlist_is(longest, "", "too long");
    memset(longest, 'n', sizeof longest - 1);
    hostlist_is(longest, "", "too long");
}
