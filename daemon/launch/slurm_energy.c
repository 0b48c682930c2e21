#include "daemon/launch/slurm_energy.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the steps of one job, 0: not told. */
struct slurm_energy_steps {
    double external, batch, numbered; /* the most that a numbered one tells */
};

/* NO_VAL and INFINITE, of 32 and of 64 bits, are what Slurm prints for what it does not know. */
static double energy_number(const char *text)
{
    char *end;
    uint64_t value = strtoumax(text, &end, 10);
    bool unknown = value == UINT32_MAX || value == UINT32_MAX - 1 || value >= UINT64_MAX - 1;

    return end == text || *text == '-' || *end || unknown ? 0 : (double)value;
}

/* "12.batch|8140": the last field is the number. */
static void energy_take_step(char *line, struct slurm_energy_steps *steps)
{
    char *number = strrchr(line, '|'), *step = strchr(line, '.');

    if (!number || !step || step > number)
        return;
    *number++ = '\0';
    step++;
    step[strcspn(step, "|")] = '\0';
    double joules = energy_number(number);
    double *place = strcmp(step, "extern") == 0                           ? &steps->external
                    : strcmp(step, "batch") == 0                          ? &steps->batch
                    : strspn(step, "0123456789") == strlen(step) && *step ? &steps->numbered
                                                                          : NULL;
    if (place)
        *place = fmax(*place, joules);
}

static double energy_of_all(const struct slurm_energy_steps *s, bool srun, long nodes)
{
    if (s->external > 0)
        return s->external;
    if (srun)
        return s->numbered > 0 ? s->numbered : NAN;
    if (s->batch > 0 && (nodes == 1 || s->numbered > 0))
        return s->batch + (nodes > 1 ? s->numbered : 0);
    return NAN;
}

double slurm_energy_read(const char *text)
{
    struct slurm_energy_steps steps = {0};
    char *copy = strdup(text), *rest = copy, *line, how[16] = "";
    long nodes = 0;

    while ((line = strsep(&rest, "\n")))
        if (line == copy)
            sscanf(line, "%15s %9ld", how, &nodes);
        else
            energy_take_step(line, &steps);
    bool srun = strcmp(how, "srun") == 0;
    bool told = nodes > 0 && (srun || strcmp(how, "mpirun") == 0);
    free(copy);
    return told ? energy_of_all(&steps, srun, nodes) : NAN;
}
