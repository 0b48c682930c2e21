#include "common/checkpoints.h"

#include <stdio.h>
#include <stdlib.h>

bool checkpoint_step(const char *name, int64_t *step)
{
    long long number;
    int used = 0;

    if (sscanf(name, "step-%lld%n", &number, &used) != 1 || name[used])
        return false;
    *step = number;
    return true;
}

static int newest_first(const struct dirent **a, const struct dirent **b)
{
    int64_t x = 0, y = 0;
    checkpoint_step((*a)->d_name, &x);
    checkpoint_step((*b)->d_name, &y);
    return (x < y) - (x > y);
}

static int is_checkpoint(const struct dirent *entry)
{
    int64_t step;
    return checkpoint_step(entry->d_name, &step);
}

int checkpoint_list(const char *checkpoints, struct dirent ***names)
{
    int count = scandir(checkpoints, names, is_checkpoint, newest_first);
    if (count < 0)
        *names = NULL;
    return count < 0 ? 0 : count;
}

void checkpoint_list_free(struct dirent **names, int count)
{
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
}
