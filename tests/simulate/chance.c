#include "tests/simulate/chance.h"

#include <string.h>

void chance_by_seed(struct chance *c, uint64_t seed)
{
    memset(c, 0, sizeof *c);
    c->state = seed;
}

void chance_by_script(struct chance *c, const uint8_t *script, size_t count)
{
    memset(c, 0, sizeof *c);
    c->script = script;
    c->script_count = count;
}

/* SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). */
static uint64_t chance_next(struct chance *c)
{
    uint64_t z = c->state += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

unsigned chance_of(struct chance *c, unsigned n)
{
    unsigned chosen;

    if (c->calm || c->count == CHOICES_MAX)
        return 0;
    if (c->script)
        chosen = c->count < c->script_count ? c->script[c->count] % n : 0;
    else
        chosen = (unsigned)(chance_next(c) % n);
    c->made[c->count++] = (uint8_t)chosen;
    return chosen;
}

bool chance_once_in(struct chance *c, unsigned n)
{
    return chance_of(c, n) == 1;
}
