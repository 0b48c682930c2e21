#include "tests/fuzz/fuzz.h"

#include <string.h>

/* clang-format off */
static const struct fuzz_target targets[] = {
    {"job",         fuzz_job,         4096,  2000},
    {"http",        fuzz_http,        2048,   600},
    {"config",      fuzz_config,      2048,  4000},
    {"manifest",    fuzz_manifest,    2048,  4000},
    {"index",       fuzz_index,       1024,  4000},
    {"records",     fuzz_records,     4096, 20000},
    {"jpeg",        fuzz_jpeg,        4096,   500},
    {"png",         fuzz_png,         2048,  2000},
    {"safetensors", fuzz_safetensors, 4096,  4000},
    {"state",       fuzz_state,       4096,  1500},
    {"events",      fuzz_events,      2048,   300},
    {"step-line",   fuzz_fast_step,   2048,  8000},
    {"idx",         fuzz_idx,         2048,  2500},
    {"tar",         fuzz_tar,         8192,  2000},
    {"slurm",       fuzz_slurm,       4096,  8000},
    {"tokens",      fuzz_tokens,      2048,  2500},
    {"notices",     fuzz_notices,     2048,  4000},
};
/* clang-format on */

const struct fuzz_target *fuzz_target_at(size_t i)
{
    return i < sizeof targets / sizeof targets[0] ? &targets[i] : NULL;
}

const struct fuzz_target *fuzz_target_find(const char *name)
{
    for (size_t i = 0; fuzz_target_at(i); i++)
        if (strcmp(targets[i].name, name) == 0)
            return &targets[i];
    return NULL;
}
