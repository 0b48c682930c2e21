#include "common/check.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/timex.h>

#include "common/clock.h"

#define FOUND_BYTES  512
#define CLOCK_OLDEST 1.7e9

static void check_add(json_t *list, const char *check, bool ok, const char *advice,
                      const char *format, va_list args)
{
    char found[FOUND_BYTES];

    vsnprintf(found, sizeof found, format, args);
    json_array_append_new(list, json_pack("{s:s, s:b, s:s, s:s?}", "check", check, "ok", ok,
                                          "found", found, "advice", advice));
}

void check_note(json_t *list, const char *check, bool ok, const char *advice, const char *format,
                ...)
{
    va_list args;

    va_start(args, format);
    check_add(list, check, ok, ok ? NULL : advice, format, args);
    va_end(args);
}

void check_warn(json_t *list, const char *check, const char *advice, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    check_add(list, check, true, advice, format, args);
    va_end(args);
}

const char *check_word(const json_t *item)
{
    return !json_is_true(json_object_get(item, "ok"))        ? "BAD"
           : json_is_string(json_object_get(item, "advice")) ? "warn"
                                                             : "ok";
}

bool check_all_ok(const json_t *list)
{
    const json_t *item;
    size_t i;

    json_array_foreach (list, i, item)
        if (!json_is_true(json_object_get(item, "ok")))
            return false;
    return true;
}

void check_clock(json_t *list)
{
    struct timex t = {0};
    bool set = clock_now() > CLOCK_OLDEST;
    bool synchronised = adjtimex(&t) >= 0 && !(t.status & STA_UNSYNC);

    if (set && !synchronised)
        check_warn(list, "clock",
                   "run an NTP client (apt-get install chrony): a clock that drifts "
                   "makes times of different machines incomparable",
                   "not synchronised (no NTP)");
    else
        check_note(list, "clock", set,
                   "set the clock: the times of jobs and the ends of tokens come from it", "%s",
                   set ? "synchronised" : "is years behind");
}

void check_disk(json_t *list, const char *check, const char *folder, const char *advice)
{
    struct statvfs fs;

    if (statvfs(folder, &fs)) {
        check_note(list, check, false, advice, "cannot check %s: %s", folder, strerror(errno));
        return;
    }
    double free_bytes = (double)fs.f_bavail * (double)fs.f_frsize;
    check_note(list, check, free_bytes > CHECK_DISK_LOW_BYTES, advice, "%.1f GB free in %s",
               free_bytes / 1e9, folder);
}
