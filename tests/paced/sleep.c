/*
 * The train-worker of tests that break a run while it trains, and of pages that show one: it sleeps
 * for 0.3 s behind each step, and for 0.05 s before it looks at images of an evaluation, so that
 * tests beside it get the processor while its own waits for something. Linked with --wrap=write and
 * --wrap=model_predict.
 */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "worker/model/model.h"

static void paced_sleep(long milliseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000}, NULL);
}

ssize_t __real_write(int fd, const void *bytes, size_t count);
ssize_t __wrap_write(int fd, const void *bytes, size_t count);

ssize_t __wrap_write(int fd, const void *bytes, size_t count)
{
    static const char step[] = "\"type\": \"step\"";
    ssize_t written = __real_write(fd, bytes, count);

    if (memmem(bytes, count, step, sizeof step - 1))
        paced_sleep(300);
    return written;
}

void __real_model_predict(struct model *m, const void *images, int n, float *logits);
void __wrap_model_predict(struct model *m, const void *images, int n, float *logits);

void __wrap_model_predict(struct model *m, const void *images, int n, float *logits)
{
    paced_sleep(50);
    __real_model_predict(m, images, n, logits);
}
