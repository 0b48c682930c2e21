/* RAPL's counters, in folders that are made up: what counts, wrap-around and missing rights. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/file.h"
#include "common/system/powercap.h"

#define RANGE 262143328850ull

static char root[64];

static void put(const char *zone, const char *name, const char *text)
{
    char path[256];
    struct error e;

    snprintf(path, sizeof path, "%s/%s", root, zone);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/%s/%s", root, zone, name);
    cr_assert_eq(file_write_atomic(path, text, strlen(text), &e), 0, "%s", e.text);
    chmod(path, 0644);
}

/* The counter keeps its file, as the kernel's does. */
static void set(const char *zone, unsigned long long uj)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s/energy_uj", root, zone);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fprintf(f, "%llu\n", uj);
    fclose(f);
}

static void add_zone(const char *zone, const char *name, unsigned long long uj)
{
    char range[32];

    snprintf(range, sizeof range, "%llu\n", RANGE);
    put(zone, "name", name);
    put(zone, "max_energy_range_uj", range);
    set(zone, uj);
}

static void set_up(void)
{
    strcpy(root, "/tmp/traind-powercap-XXXXXX");
    cr_assert_not_null(mkdtemp(root));
    chmod(root, 0755);
}

static void tear_down(void)
{
    struct error e;
    file_remove_tree(root, &e);
}

TestSuite(powercap, .init = set_up, .fini = tear_down);

static double joules(struct powercap *p)
{
    struct error e;
    double value;

    cr_assert_eq(powercap_read(p, &value, &e), 0, "%s", e.text);
    return value;
}

Test(powercap, adds_packages_and_memory_and_nothing_twice)
{
    struct powercap *p;
    struct error e;

    add_zone("intel-rapl:0", "package-0\n", 1000000);
    add_zone("intel-rapl:1", "package-1\n", 2000000);
    add_zone("intel-rapl:2", "psys\n", 0);
    add_zone("intel-rapl:0:0", "core\n", 0);
    add_zone("intel-rapl:0:1", "dram\n", 500000);
    add_zone("intel-rapl-mmio:0", "package-0\n", 0);
    add_zone("dtpm", "package-0\n", 0);
    cr_assert_eq(powercap_open(root, &p, &e), 0, "%s", e.text);
    cr_assert_eq(joules(p), 0);
    set("intel-rapl:0", 4000000);
    set("intel-rapl:1", 2250000);
    set("intel-rapl:0:1", 1500000);
    for (int i = 0; i < 2; i++) {
        set(i ? "intel-rapl:2" : "intel-rapl:0:0", 900000000);
        set("intel-rapl-mmio:0", 900000000);
        set("dtpm", 900000000);
    }
    cr_assert_float_eq(joules(p), 3 + 0.25 + 1, 1e-9);
    cr_assert_float_eq(joules(p), 4.25, 1e-9);
    powercap_close(p);
}

Test(powercap, goes_on_behind_a_wrap_around)
{
    struct powercap *p;
    struct error e;

    add_zone("intel-rapl:0", "package-0\n", RANGE - 1000000);
    cr_assert_eq(powercap_open(root, &p, &e), 0, "%s", e.text);
    set("intel-rapl:0", 500000);
    cr_assert_float_eq(joules(p), 1.5, 1e-9);
    for (int i = 1; i <= 3; i++) { /* again and again, in halves of the range */
        set("intel-rapl:0", RANGE / 2 + 500000);
        joules(p);
        set("intel-rapl:0", 500000);
        cr_assert_float_eq(joules(p), 1.5 + i * 1e-6 * (double)RANGE, 1e-5);
    }
    powercap_close(p);
}

Test(powercap, says_what_is_missing)
{
    struct powercap *p;
    struct error e;

    cr_assert_eq(powercap_open("/none/powercap", &p, &e), -ERR_NOT_FOUND);
    cr_assert_eq(powercap_open(root, &p, &e), -ERR_NOT_FOUND);
    cr_assert_null(p);
    add_zone("intel-rapl:0", "package-0\n", 7);
    put("intel-rapl:0", "energy_uj", "many\n");
    cr_assert_eq(powercap_open(root, &p, &e), -ERR_CORRUPT);
    cr_assert_not_null(strstr(e.text, "intel-rapl:0/energy_uj does not contain a number"), "%s",
                       e.text);
}

Test(powercap, says_who_may_read)
{
    char path[128];
    struct powercap *p;
    struct error e;

    add_zone("intel-rapl:0", "package-0\n", 7);
    snprintf(path, sizeof path, "%s/intel-rapl:0/energy_uj", root);
    chmod(path, 0400);
    if (geteuid() == 0)
        cr_assert_eq(seteuid(65534), 0);
    else
        chmod(path, 0000);
    int status = powercap_open(root, &p, &e);
    if (getuid() == 0)
        cr_assert_eq(seteuid(0), 0);
    cr_assert_eq(status, -ERR_NOT_ALLOWED);
    cr_assert_not_null(strstr(e.text, "CVE-2020-8694"), "%s", e.text);
}

/* A counter that says nonsense once is gone on from. */
Test(powercap, goes_on_behind_an_error)
{
    struct powercap *p;
    struct error e;
    double value;
    char path[128];

    add_zone("intel-rapl:0", "package-0\n", 1000000);
    cr_assert_eq(powercap_open(root, &p, &e), 0, "%s", e.text);
    set("intel-rapl:0", 2000000);
    cr_assert_float_eq(joules(p), 1, 1e-9);
    snprintf(path, sizeof path, "%s/intel-rapl:0/energy_uj", root);
    FILE *f = fopen(path, "w");
    fputs("?", f);
    fclose(f);
    cr_assert_eq(powercap_read(p, &value, &e), -ERR_CORRUPT);
    cr_assert_float_eq(value, 1, 1e-9);
    set("intel-rapl:0", 5000000);
    cr_assert_float_eq(joules(p), 4, 1e-9);
    powercap_close(p);
}
