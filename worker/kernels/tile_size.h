/*
 * The register tile of tile_gemm.h and whether it pays, for the processor kind this is compiled
 * for: for the engine's own files.
 */
#pragma once

#include "worker/team/dry_run.h"
#include "worker/kernels/vec.h"

/* 2 x 14 sums, two columns and one row element fill the 32 registers of AVX-512; others have 16. */
#define TILE_ROWS_OF(vec) ((vec) == 16 ? 14 : 6)

enum { TILE_COLUMNS = 2 * VEC, TILE_ROWS = TILE_ROWS_OF(VEC) };

/* The same for what shares the work: of the engine that is counted for (team/dry_run.h), if one is;
 * tile_columns() is in tile_gemm.h. */
static inline size_t tile_vec(void)
{
    return dry_run_vec ? dry_run_vec : VEC;
}

static inline size_t tile_rows(void)
{
    return TILE_ROWS_OF(tile_vec());
}

/* Where the register tile is measured to be as fast as OpenBLAS or faster: AVX-512 (114 against 100
 * GFLOP/s), AVX2 by gcc (the same; clang 14 spills its sums: 42 against 106). Not with SSE alone,
 * where OpenBLAS finds better code when it starts. */
#if defined __AVX512F__ || (defined __AVX2__ && !defined __clang__)
#define TILE_GEMM_PAYS 1
#else
#define TILE_GEMM_PAYS 0
#endif
