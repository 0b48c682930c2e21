#include "launch/hosts.h"
#include "tests/unit/folder.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOOD "{\"entry\": \"a:4\", \"name\": \"a\", \"host\": \"a.net\"}"

/* Workers run as the daemon's user and can write this file. */
static void write_hosts(const char *nodes, const char *entries)
{
    char text[8192];

    int bytes = snprintf(text, sizeof text, "{\"asked\": true, \"nodes\": %s, \"hosts\": [%s]}",
                         nodes, entries);
    cr_assert_lt((size_t)bytes, sizeof text);
    make_folder();
    write_in_folder("hosts.json", text);
}

/* How many hosts are taken of 32 good ones. */
static size_t count_taken(const char *nodes)
{
    char entries[4096] = GOOD;
    struct hosts_taken taken;

    for (int i = 1; i < 32; i++)
        strcat(entries, "," GOOD);
    write_hosts(nodes, entries);
    hosts_read_taken(folder, &taken);
    size_t count = taken.count;
    hosts_taken_clear(&taken);
    remove_folder();
    return count;
}

Test(hosts, at_most_the_jobs_nodes_are_taken)
{
    cr_assert_eq(count_taken("2"), 2);
}

Test(hosts, none_are_taken_for_fewer_than_one_node)
{
    cr_assert_eq(count_taken("-1"), 0);
}

Test(hosts, none_are_taken_if_nodes_is_not_a_number)
{
    cr_assert_eq(count_taken("\"two\""), 0);
}

Test(hosts, at_most_the_listed_hosts_are_taken)
{
    cr_assert_eq(count_taken("9223372036854775807"), 32);
}

Test(hosts, a_host_without_a_name_is_not_taken)
{
    struct hosts_taken taken;

    write_hosts("2", "{\"host\": \"x.net\"}, {\"name\": 7, \"host\": \"y.net\"}, 3, " GOOD);
    cr_assert(hosts_read_taken(folder, &taken));
    cr_assert_eq(taken.count, 1);
    cr_assert_str_eq(taken.names[0], "a");
    cr_assert_str_eq(taken.machines[0], "a.net");
    hosts_taken_clear(&taken);
    remove_folder();
}

Test(hosts, a_host_without_a_name_is_not_a_machine_of_the_job)
{
    write_hosts("2", "{\"host\": \"x.net\"}, {\"host\": \"a.net\"}, " GOOD);
    cr_assert_null(hosts_name_of(folder, "x.net"));
    char *name = hosts_name_of(folder, "a.net");
    cr_assert_str_eq(name, "a");
    free(name);
    remove_folder();
}

Test(hosts, a_host_without_a_name_has_no_problem)
{
    struct hosts_found found;

    write_hosts("2", "{\"problem\": \"is away\"}, "
                     "{\"name\": \"b\", \"problem\": \"does not answer\"}, " GOOD);
    cr_assert(hosts_read(folder, &found));
    cr_assert_eq(found.problem_count, 1);
    cr_assert_str_eq(found.problems, "host b does not answer");
    cr_assert_eq(found.usable_count, 1);
    cr_assert_str_eq(found.usable[0], "a:4");
    hosts_found_clear(&found);
    remove_folder();
}
