#include "common/assert_always.h"

#include <config.h>
#include <errno.h>
#include <stdlib.h>

#include "common/log.h"

void assert_failed(const char *condition, const char *function, const char *file, int line)
{
    int errnum = errno;

    /* Place and condition come first, because the daemon shows only the start of a worker's
     * line. */
    log_error("internal error at %s:%d, %s: %s is false (%s " PACKAGE_VERSION
              ", errno %d); this is "
              "a bug: please report this line. Nothing that was stored is lost: start %s again",
              file, line, function, condition, program_invocation_short_name, errnum,
              program_invocation_short_name);
    abort();
}
