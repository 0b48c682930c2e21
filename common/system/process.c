#include "common/system/process.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/system/file.h"

#define FIELD_STATE   3
#define FIELD_PARENT  4
#define FIELD_SESSION 6
#define FIELD_START   22

bool process_stat_parse(const char *text, struct process_stat *stat)
{
    int64_t fields[FIELD_START + 1] = {0};
    /* The name, field 2, may contain spaces and parentheses. */
    const char *field = strrchr(text, ')');

    if (!field || field[1] != ' ' || !field[2])
        return false;
    field += 2;
    char state = *field;
    for (int number = FIELD_STATE; number < FIELD_START; number++) {
        if (!(field = strchr(field, ' ')))
            return false;
        fields[number + 1] = strtoll(++field, NULL, 10);
    }
    *stat = (struct process_stat){state, fields[FIELD_PARENT], fields[FIELD_SESSION],
                                  fields[FIELD_START]};
    return true;
}

bool process_stat_read(int64_t pid, struct process_stat *stat)
{
    char path[64], text[1024];

    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    return process_stat_parse(text, stat);
}

char *process_variable(int64_t pid, const char *name)
{
    char path[64], *text = NULL, *value = NULL;
    size_t capacity = 0, length = strlen(name);

    snprintf(path, sizeof path, "/proc/%lld/environ", (long long)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    while (!value && getdelim(&text, &capacity, '\0', file) > 0)
        if (strncmp(text, name, length) == 0 && text[length] == '=')
            value = strdup(text + length + 1);
    free(text);
    fclose(file);
    return value;
}

static struct rlimit given; /* limit set by the parent process */
static bool forbidden;

void process_forbid_core_dump(void)
{
    if (forbidden || getrlimit(RLIMIT_CORE, &given))
        return;
    struct rlimit none = {0, given.rlim_max};
    forbidden = setrlimit(RLIMIT_CORE, &none) == 0;
}

void process_allow_core_dump(void)
{
    if (forbidden)
        setrlimit(RLIMIT_CORE, &given);
}

struct walk {
    process_build_id_visit *visit;
    void *context;
};

static size_t process_note_align(size_t bytes)
{
    return (bytes + 3) & ~(size_t)3;
}

static void process_note_find(const char *at, size_t bytes, char hex[PROCESS_BUILD_ID_BYTES])
{
    const char *end = at + bytes;
    ElfW(Nhdr) n;

    while ((size_t)(end - at) >= sizeof n) {
        memcpy(&n, at, sizeof n);
        size_t name = process_note_align(n.n_namesz), data = process_note_align(n.n_descsz);
        const char *body = at + sizeof n;
        if (name > (size_t)(end - body) || data > (size_t)(end - body) - name)
            return;
        if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && memcmp(body, "GNU", 4) == 0) {
            for (size_t i = 0; i < n.n_descsz && 2 * i + 2 < PROCESS_BUILD_ID_BYTES; i++)
                snprintf(hex + 2 * i, 3, "%02x", (unsigned char)body[name + i]);
            return;
        }
        at = body + name + data;
    }
}

static int process_look(struct dl_phdr_info *info, size_t size, void *context)
{
    const struct walk *w = context;
    char hex[PROCESS_BUILD_ID_BYTES] = "";

    (void)size;
    for (int i = 0; i < info->dlpi_phnum && !*hex; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type == PT_NOTE)
            process_note_find((const char *)(uintptr_t)(info->dlpi_addr + h->p_vaddr), h->p_memsz,
                              hex);
    }
    w->visit(w->context, file_base_name(info->dlpi_name ? info->dlpi_name : ""), hex);
    return 0;
}

void process_build_id_each(process_build_id_visit *visit, void *context)
{
    struct walk w = {visit, context};
    dl_iterate_phdr(process_look, &w);
}

static void process_take_own(void *context, const char *name, const char *hex)
{
    if (!*name)
        snprintf(context, PROCESS_BUILD_ID_BYTES, "%s", hex);
}

char *process_build_id(char hex[PROCESS_BUILD_ID_BYTES])
{
    hex[0] = '\0';
    process_build_id_each(process_take_own, hex);
    return hex;
}
