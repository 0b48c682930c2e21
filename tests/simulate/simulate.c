/*
 * simulate [--lives N] [--seed S] [--without ROW] [--defect D] | --replay FILE | --mutants |
 *          --defects | --table
 *
 * Drives the core of a job's life through worlds that are made up from seeds, until N attempts have
 * run, and stops at the first world in which something is wrong: its seed is printed, and the
 * shortest list of choices that was found to go wrong too, for tests/simulate/cases. --mutants
 * leaves out one row after another of the table, --defects puts back one old defect after another,
 * and both count those that the checks do not find. --table prints the table for
 * doc/job-lifecycle.md.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulate/world.h"

#define MUTANT_WORLDS 20000

static struct world world;
static FILE *trace;
static enum defect defect;

static void simulate_nothing(void)
{
    memset(&world, 0, sizeof world);
    world.trace = trace;
    world.defect = defect;
}

static bool simulate_seed(uint64_t seed)
{
    simulate_nothing();
    chance_by_seed(&world.chance, seed);
    return world_run(&world);
}

static bool simulate_script(const uint8_t *script, size_t count)
{
    simulate_nothing();
    chance_by_script(&world.chance, script, count);
    return world_run(&world);
}

static bool simulate_goes_wrong(const uint8_t *script, size_t count, const char *kind)
{
    return !simulate_script(script, count) && world.violation_kind == kind;
}

/* Cuts the list, and replaces choices by 0, as long as the same is wrong. */
static size_t simulate_shrink(uint8_t *script, size_t count)
{
    const char *kind = world.violation_kind;
    static uint8_t tried[CHOICES_MAX];
    bool better = true;

    while (better) {
        better = false;
        for (size_t size = count / 2; size > 0; size /= 2)
            for (size_t at = 0; at + size <= count; at += size) {
                memcpy(tried, script, at);
                memcpy(tried + at, script + at + size, count - at - size);
                if (!simulate_goes_wrong(tried, count - size, kind))
                    continue;
                count -= size;
                memcpy(script, tried, count);
                better = true;
            }
        for (size_t at = 0; at < count; at++) {
            uint8_t before = script[at];
            script[at] = 0;
            if (before && simulate_goes_wrong(script, count, kind))
                better = true;
            else
                script[at] = before;
        }
    }
    while (count && script[count - 1] == 0)
        count--;
    return count;
}

static void simulate_tell(uint64_t seed)
{
    static uint8_t script[CHOICES_MAX];
    size_t count = world.chance.count;

    printf("seed %llu: %s\n", (unsigned long long)seed, world.violation);
    memcpy(script, world.chance.made, count);
    count = simulate_shrink(script, count);
    trace = stdout;
    simulate_script(script, count);
    printf("shrunk to %zu choices: %s\n", count, world.violation);
    for (size_t i = 0; i < count; i++)
        printf("%u%c", script[i], i + 1 == count || i % 30 == 29 ? '\n' : ' ');
}

static int simulate_lives(long lives, uint64_t seed)
{
    long done = 0, worlds = 0, grown = 0;

    for (; done < lives; seed++, worlds++) {
        if (!simulate_seed(seed)) {
            simulate_tell(seed);
            return 1;
        }
        done += world.lives;
        grown += world.grown;
    }
    printf("%ld lives in %ld worlds, %ld grown, nothing wrong\n", done, worlds, grown);
    return 0;
}

static bool simulate_finds(void)
{
    uint64_t seed = 0;

    while (seed < MUTANT_WORLDS && simulate_seed(seed))
        seed++;
    if (seed == MUTANT_WORLDS)
        printf("not found\n");
    else
        printf("seed %llu: %s\n", (unsigned long long)seed, world.violation);
    return seed < MUTANT_WORLDS;
}

static int simulate_mutants(void)
{
    int missed = 0;

    for (int row = 0; row < simulate_row_count(); row++) {
        printf("without \"%s\": ", simulate_row_words(row));
        simulate_leave_out(row);
        missed += !simulate_finds();
    }
    simulate_leave_out(-1);
    printf("%d rows of %d are not missed\n", missed, simulate_row_count());
    return 0;
}

static int simulate_defects(void)
{
    int missed = 0;

    for (int i = DEFECT_NONE + 1; i < DEFECT_COUNT; i++) {
        printf("defect %d: ", i);
        defect = (enum defect)i;
        missed += !simulate_finds();
    }
    printf("%d defects of %d are not found\n", missed, DEFECT_COUNT - 1);
    return missed > 0;
}

static int simulate_replay(const char *path)
{
    static uint8_t script[CHOICES_MAX];
    size_t count = 0;
    unsigned choice;
    FILE *file = fopen(path, "re");

    if (!file) {
        fprintf(stderr, "simulate: %s: %s\n", path, strerror(errno));
        return 2;
    }
    while (count < CHOICES_MAX && fscanf(file, "%u", &choice) == 1)
        script[count++] = (uint8_t)choice;
    fclose(file);
    trace = stdout;
    if (simulate_script(script, count)) {
        printf("%s: %zu choices, nothing wrong\n", path, count);
        return 0;
    }
    printf("%s: %s\n", path, world.violation);
    return 1;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"lives",   required_argument, NULL, 'l'},
        {"seed",    required_argument, NULL, 's'},
        {"without", required_argument, NULL, 'w'},
        {"replay",  required_argument, NULL, 'r'},
        {"mutants", no_argument,       NULL, 'm'},
        {"defects", no_argument,       NULL, 'd'},
        {"defect",  required_argument, NULL, 'D'},
        {"table",   no_argument,       NULL, 't'},
        {NULL,      0,                 NULL, 0  },
    };
    long lives = 1000;
    uint64_t seed = 0;
    const char *replay = NULL;
    bool mutants = false, defects = false;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'l')
            lives = atol(optarg);
        else if (option == 's')
            seed = strtoull(optarg, NULL, 10);
        else if (option == 'w')
            simulate_leave_out(atoi(optarg));
        else if (option == 'r')
            replay = optarg;
        else if (option == 'm')
            mutants = true;
        else if (option == 'd')
            defects = true;
        else if (option == 'D')
            defect = (enum defect)atoi(optarg);
        else if (option == 't')
            return simulate_print_table(), 0;
        else
            return 2;
    }
    if (replay)
        return simulate_replay(replay);
    if (defects)
        return simulate_defects();
    return mutants ? simulate_mutants() : simulate_lives(lives, seed);
}
