/* The register tile of tile_gemm.h for the compiled ISA level. For the engine only. */
#pragma once

#include "worker/team/dry_run.h"
#include "worker/kernels/vec.h"

/* 2 x 14 sums, two columns and one row element fill the 32 registers of AVX-512; others have 16. */
#define TILE_ROWS_OF(vec) ((vec) == 16 ? 14 : 6)

enum { TILE_COLUMNS = 2 * VEC, TILE_ROWS = TILE_ROWS_OF(VEC) };

/* The same for work sharing: of the counted engine (team/dry_run.h), if set. tile_columns() is in
 * tile_gemm.h. */
static inline size_t tile_vec(void)
{
    return dry_run_vec ? dry_run_vec : VEC;
}

static inline size_t tile_rows(void)
{
    return TILE_ROWS_OF(tile_vec());
}

/* Whether the register tile is at least as fast as OpenBLAS: with AVX-512 (114 against 100 GFLOP/s)
 * and with AVX2 by gcc (equal; clang 14 spills its sums: 42 against 106), but not with SSE. */
#if defined __AVX512F__ || (defined __AVX2__ && !defined __clang__)
#define TILE_GEMM_PAYS 1
#else
#define TILE_GEMM_PAYS 0
#endif
