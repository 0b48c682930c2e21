#include "daemon/notice/mail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/assert_always.h"
#include "common/clock.h"
#include "common/text.h"
#include "common/system/file.h"
#include "common/system/spawn.h"
#include "common/xalloc.h"
#include "daemon/notice/address.h"
#include "daemon/notice/render.h"

#define MAIL_SECONDS      60.0
#define MAIL_OUTPUT_BYTES 4096

#define MAIL_MAGIC 0x3a11b0f5u

struct mail {
    unsigned magic;
    struct spawn command;
    double until; /* monotonic deadline */
    char program[256];
};

static int mail_file(const char *text, struct error *e)
{
    int fd = memfd_create("traind-notice", MFD_CLOEXEC);
    int why = fd < 0 ? 1 : file_write_all(fd, text, strlen(text));

    if (fd >= 0 && !why && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return error_set(e, ERR_NO_MEMORY, "out of memory for a mail");
}

static int mail_start(struct mail *m, const struct outbox_notice *n,
                      const struct notice_settings *s, int input, struct error *e)
{
    char *plain[] = {s->config.notify_sendmail, (char *)"-i", n->target + strlen("mailto:"), NULL};
    char *from[] = {
        s->config.notify_sendmail,     (char *)"-i", (char *)"-f", s->config.notify_from,
        n->target + strlen("mailto:"), NULL};
    struct spawn_request request = {
        .argv = s->config.notify_from ? from : plain,
        .input = input,
        .stream = {SPAWN_COLLECTED, SPAWN_COLLECTED},
        .limit_bytes = MAIL_OUTPUT_BYTES,
        .ends_with_us = true
    };

    snprintf(m->program, sizeof m->program, "%s", s->config.notify_sendmail);
    m->until = clock_monotonic() + MAIL_SECONDS;
    return spawn_begin(&request, &m->command, e);
}

int mail_create(const struct outbox_notice *n, const struct notice_settings *settings,
                struct mail **out, struct error *e)
{
    *out = NULL;
    if (!n->by_rule && !address_mail_is_allowed(settings->config.notify_mail_domains, n->target))
        return error_set(e, ERR_INVALID,
                         "notify_mail_domains of traind.conf does not list the domain");
    char *text = render_mail(n, settings);
    if (!text)
        return error_set(e, ERR_TOO_LARGE, RENDER_TOO_LARGE);
    int input = mail_file(text, e);
    free(text);
    if (input < 0)
        return input;
    struct mail *m = xcalloc(1, sizeof *m);
    m->magic = MAIL_MAGIC;
    m->command = SPAWN_NONE;
    int status = mail_start(m, n, settings, input, e);
    close(input);
    if (status)
        mail_destroy(m);
    else
        *out = m;
    return status;
}

int mail_pidfd(const struct mail *m)
{
    assert_object(m, MAIL_MAGIC);
    return m->command.pidfd;
}

/* Joins the command's output into one line: the server's answer is often the last of several. */
static void mail_words(const struct buffer *said, char *words, size_t bytes)
{
    size_t used = 0;

    *words = '\0';
    for (const char *line = said->data; line && *line && used + 3 < bytes;) {
        size_t length = strcspn(line, "\n");
        if (length > 0 && used > 0)
            used += (size_t)snprintf(words + used, bytes - used, "; ");
        used += text_escape(words + used, bytes - used, line, length, "");
        line += length + (line[length] == '\n');
    }
}

static void mail_judge(const struct mail *m, struct post_outcome *o)
{
    int status = m->command.status;
    char words[512];

    *o = (struct post_outcome){.state = OUTBOX_DELIVERED};
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    o->state = OUTBOX_WAITING;
    mail_words(&m->command.text[SPAWN_ERR], words, sizeof words);
    if (WIFEXITED(status))
        snprintf(o->words, sizeof o->words, "%s ended with status %d%s%s", m->program,
                 WEXITSTATUS(status), *words ? ": " : "", words);
    else
        snprintf(o->words, sizeof o->words, "%s was ended by signal %d", m->program,
                 WTERMSIG(status));
}

bool mail_look(struct mail *m, struct post_outcome *o)
{
    assert_object(m, MAIL_MAGIC);
    if (spawn_look(&m->command, 0)) {
        mail_judge(m, o);
        return true;
    }
    if (clock_monotonic() < m->until)
        return false;
    *o = (struct post_outcome){.state = OUTBOX_WAITING};
    snprintf(o->words, sizeof o->words, "%s did not finish within %.0f s", m->program,
             MAIL_SECONDS);
    return true;
}

void mail_destroy(struct mail *m)
{
    if (!m)
        return;
    assert_object_ends(m, MAIL_MAGIC);
    spawn_clear(&m->command);
    free(m);
}
