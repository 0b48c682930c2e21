/*
 * The kind of processor that the loaded engine was compiled for: libtrainengine is built for
 * several (worker/Makefile.inc), and the dynamic linker loads the best that the processor has.
 */
#pragma once

/* The widest vectors its loops use: "avx512", "avx2", "sse4.2", or "generic" on others. */
const char *kernels_kind(void);
