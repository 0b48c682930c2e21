/* The register tile for work sharing: of the counted engine (team/dry_run.h), if set, else
 * TILE_ROWS of isa.h. tile_columns() is in tile_gemm.h. For the engine only. */
#pragma once

#include "worker/kernels/vec.h"
#include "worker/team/dry_run.h"

static inline size_t tile_vec(void)
{
    return dry_run_vec ? dry_run_vec : VEC;
}

static inline size_t tile_rows(void)
{
    return ISA_TILE_ROWS(tile_vec());
}
