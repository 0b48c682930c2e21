#include "worker/watch/last_words.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/log.h"

/* Much for a single allocation of a library, little for a machine that trains. */
#define ROOM_BYTES ((size_t)16 << 20)

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define CRASHES (sizeof crashes / sizeof crashes[0])

static struct sigaction before[CRASHES];
static char words[256]; /* made while there is memory */
static char stack[16384] __attribute__((aligned(16)));

static bool last_words_is_short_of_memory(void)
{
    void *room = mmap(NULL, ROOM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (room != MAP_FAILED)
        munmap(room, ROOM_BYTES);
    return room == MAP_FAILED && errno == ENOMEM;
}

static void last_words_say_if_short(void)
{
    if (last_words_is_short_of_memory() && write(STDERR_FILENO, words, strlen(words)) < 0)
        return; /* nobody else to tell it to */
}

static void last_words_say_at_crash(int number)
{
    last_words_say_if_short();
    for (size_t i = 0; i < CRASHES; i++)
        if (crashes[i] == number)
            sigaction(number, &before[i], NULL);
    raise(number); /* to the handler before, when this one returns */
}

static void last_words_say_at_error(void *context, const char *error)
{
    (void)context;
    log_error("MPI ended the run: %s", error);
    last_words_say_if_short();
}

void last_words_prepare(struct traincomm *comm)
{
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = last_words_say_at_crash, .sa_flags = SA_ONSTACK};

    snprintf(
        words, sizeof words,
        "error: rank %d on %s: Cannot allocate memory: there was no room for %zu MiB more when "
        "it ended\n",
        traincomm_rank(comm), traincomm_host(comm, traincomm_rank(comm)), ROOM_BYTES >> 20);
    sigaltstack(&other, NULL); /* a stack that could not grow holds no handler */
    for (size_t i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &action, &before[i]);
    traincomm_on_error(comm, last_words_say_at_error, NULL);
}
