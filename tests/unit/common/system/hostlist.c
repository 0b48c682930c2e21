/* Slurm's lists of hosts. */
#include <criterion/criterion.h>

#include "common/system/hostlist.h"

static void hostlist_position(const char *list, const char *name, int expected, int of)
{
    int count, found = hostlist_place(list, name, &count);

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
}

Test(hostlist, what_is_none)
{
    hostlist_position("", "n1", -1, 0);
    hostlist_position("n[1-", "n1", -1, 0);
    hostlist_position("n[]", "n", -1, 0);
    hostlist_position("n[a]", "na", -1, 0);
    hostlist_position("n[3-1]", "n1", -1, 0);
    hostlist_position("n[1-2][3-4]", "n13", -1, 0);
    hostlist_position(",n1", "n1", -1, 0);
    hostlist_position("n[1;rm]", "n1", -1, 0);
}
