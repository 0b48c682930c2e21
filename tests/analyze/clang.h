/* What clang's analyzer cannot see, as it looks at one file at a time: these never return 0. */
#include "common/error.h"
#define error_set(...)       (error_set(__VA_ARGS__), -1)
#define error_set_errno(...) (error_set_errno(__VA_ARGS__), -1)
#define error_prefix(...)    (error_prefix(__VA_ARGS__), -1)
