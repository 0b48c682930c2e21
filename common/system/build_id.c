#include "common/system/build_id.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/system/file.h"

struct walk {
    build_id_visit *visit;
    void *context;
};

static size_t build_id_note_align(size_t bytes)
{
    return (bytes + 3) & ~(size_t)3;
}

/* Looks through the notes of one segment. */
static void build_id_note_find(const char *at, size_t bytes, char hex[BUILD_ID_BYTES])
{
    const char *end = at + bytes;
    ElfW(Nhdr) n;

    while ((size_t)(end - at) >= sizeof n) {
        memcpy(&n, at, sizeof n);
        size_t name = build_id_note_align(n.n_namesz), data = build_id_note_align(n.n_descsz);
        const char *body = at + sizeof n;
        if (name > (size_t)(end - body) || data > (size_t)(end - body) - name)
            return;
        if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && memcmp(body, "GNU", 4) == 0) {
            for (size_t i = 0; i < n.n_descsz && 2 * i + 2 < BUILD_ID_BYTES; i++)
                snprintf(hex + 2 * i, 3, "%02x", (unsigned char)body[name + i]);
            return;
        }
        at = body + name + data;
    }
}

static int build_id_look(struct dl_phdr_info *info, size_t size, void *context)
{
    const struct walk *w = context;
    char hex[BUILD_ID_BYTES] = "";

    (void)size;
    for (int i = 0; i < info->dlpi_phnum && !*hex; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type == PT_NOTE)
            build_id_note_find((const char *)(uintptr_t)(info->dlpi_addr + h->p_vaddr), h->p_memsz,
                               hex);
    }
    w->visit(w->context, file_base_name(info->dlpi_name ? info->dlpi_name : ""), hex);
    return 0;
}

void build_id_each(build_id_visit *visit, void *context)
{
    struct walk w = {visit, context};
    dl_iterate_phdr(build_id_look, &w);
}

static void build_id_take_own(void *context, const char *name, const char *hex)
{
    if (!*name)
        snprintf(context, BUILD_ID_BYTES, "%s", hex);
}

char *build_id_own(char hex[BUILD_ID_BYTES])
{
    hex[0] = '\0';
    build_id_each(build_id_take_own, hex);
    return hex;
}
