#include "worker/kernels/kind.h"

const char *kernels_kind(void)
{
#if defined __AVX512F__
    return "avx512";
#elif defined __AVX2__
    return "avx2";
#elif defined __SSE4_2__
    return "sse4.2";
#else
    return "generic";
#endif
}
