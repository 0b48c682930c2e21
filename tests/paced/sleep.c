/*
 * The train-worker of tests that break a run while it trains: it sleeps for 0.3 s behind each
 * step, so that tests beside it get the processor while its own waits for something.
 * Linked with --wrap=write.
 */
#include <string.h>
#include <time.h>
#include <unistd.h>

ssize_t __real_write(int fd, const void *bytes, size_t count);
ssize_t __wrap_write(int fd, const void *bytes, size_t count);

ssize_t __wrap_write(int fd, const void *bytes, size_t count)
{
    static const char step[] = "\"type\": \"step\"";
    ssize_t written = __real_write(fd, bytes, count);

    if (memmem(bytes, count, step, sizeof step - 1))
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    return written;
}
