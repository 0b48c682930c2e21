#include "worker/watch/kernel_kinds.h"

#include "common/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS_SAID 8 /* of one kind, in the warning */

/* The kind of a rank, which is added if there was none before. */
static json_t *kind_of(json_t *kinds, const struct binding *b)
{
    json_t *kind;
    size_t i;

    json_array_foreach (kinds, i, kind)
        if (strcmp(json_get_text(kind, "kernels", NULL), b->kernels) == 0 &&
            strcmp(json_get_text(kind, "openblas", NULL), b->openblas) == 0)
            return kind;
    kind = json_pack("{s:s, s:s, s:[]}", "kernels", b->kernels, "openblas", b->openblas, "hosts");
    json_array_append_new(kinds, kind);
    return kind;
}

static void kernel_kinds_add_host(json_t *hosts, const char *host)
{
    const json_t *there;
    size_t i;

    json_array_foreach (hosts, i, there)
        if (strcmp(json_string_value(there), host) == 0)
            return;
    if (i < KERNEL_KINDS_HOSTS)
        json_array_append_new(hosts, json_string(host));
}

json_t *kernel_kinds(const struct binding *ranks, const char *const *hosts, int count)
{
    json_t *kinds = json_array();

    for (int i = 0; i < count; i++)
        kernel_kinds_add_host(json_object_get(kind_of(kinds, &ranks[i]), "hosts"), hosts[i]);
    return kinds;
}

/* "avx2 with OpenBLAS 0.3.21 Haswell on c, d" */
static void kernel_kinds_say(FILE *out, const json_t *kind)
{
    const json_t *hosts = json_object_get(kind, "hosts"), *host;
    size_t i;

    fprintf(out, "%s with OpenBLAS %s on ", json_get_text(kind, "kernels", NULL),
            json_get_text(kind, "openblas", NULL));
    json_array_foreach (hosts, i, host)
        if (i < HOSTS_SAID)
            fprintf(out, "%s%s", i ? ", " : "", json_string_value(host));
    if (i > HOSTS_SAID)
        fputs(" and others", out);
}

json_t *kernel_kinds_problem(const json_t *kinds)
{
    const json_t *kind;
    char *text = NULL;
    size_t bytes, i;
    FILE *out = json_array_size(kinds) > 1 ? open_memstream(&text, &bytes) : NULL;

    if (!out)
        return NULL;
    fputs("kernels differ between hosts, so results differ in the last bits and the replicas "
          "diverge: ",
          out);
    json_array_foreach (kinds, i, kind) {
        fputs(i ? "; " : "", out);
        kernel_kinds_say(out, kind);
    }
    fputs(": use machines of one kind with the same OpenBLAS, or set GLIBC_TUNABLES="
          "glibc.cpu.hwcaps and OPENBLAS_CORETYPE for the lesser kind",
          out);
    fclose(out);
    json_t *problem = text ? json_string(text) : NULL;
    free(text);
    return problem;
}
