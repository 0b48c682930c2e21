#include "worker/check/probe.h"

#include <dirent.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "common/digest.h"
#include "common/run/attempt.h"
#include "common/system/file.h"
#include "common/system/host.h"
#include "common/system/placement.h"
#include "common/system/process.h"
#include "config.h"
#include "worker/comm/traincomm.h"
#include "worker/kernels/gemm.h"

/* Identifies the machine, whatever its name; containers of one machine differ. */
static void probe_machine_id(const char *host, char *text, size_t bytes)
{
    char boot[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (file && !fgets(boot, sizeof boot, file))
        boot[0] = '\0';
    if (file)
        fclose(file);
    boot[strcspn(boot, "\n")] = '\0';
    snprintf(text, bytes, "%s %s", boot, host);
}

static int probe_attempt_of(int64_t pid, const char *run_dir)
{
    char *folder = process_variable(pid, ATTEMPT_MARK);
    size_t length = strlen(run_dir);
    int attempt = 0;

    if (folder && strncmp(folder, run_dir, length) == 0 &&
        sscanf(folder + length, "/attempt-%d", &attempt) != 1)
        attempt = 0;
    free(folder);
    return attempt;
}

static int probe_end_leftovers(const char *run_dir, int attempt)
{
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    int ended = 0;

    while (folder && (entry = readdir(folder))) {
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        if (*end || pid <= 1 || pid == getpid())
            continue;
        int fd = pidfd_open((pid_t)pid,
                            0); /* opened first, so that the pid cannot be reused unnoticed */
        int of = fd >= 0 ? probe_attempt_of(pid, run_dir) : 0;
        if (of > 0 && of < attempt && pidfd_send_signal(fd, SIGKILL, NULL, 0) == 0)
            ended++;
        if (fd >= 0)
            close(fd);
    }
    if (folder)
        closedir(folder);
    return ended;
}

static bool probe_holds_job(const char *run_dir)
{
    char path[PATH_MAX];

    return file_path(path, NULL, "%s/job.json", run_dir) == 0 && access(path, R_OK) == 0;
}

static json_t *probe_parts_to_json(const struct placement_parts *p)
{
    return json_pack("[I, I, I]", (json_int_t)p->parts, (json_int_t)p->cores, (json_int_t)p->cpus);
}

int probe_print(const struct probe_options *o)
{
    char host[HOST_NAME_BYTES] = "", machine[HOST_NAME_BYTES + 80], digest[DIGEST_BYTES] = "";
    char mpi[64];
    struct error e;

    gethostname(host, sizeof host - 1);
    probe_machine_id(host, machine, sizeof machine);
    digest_file("/proc/self/exe", digest, &e);
    traincomm_mpi_version(mpi, sizeof mpi);
    mpi[strcspn(mpi, ",\n")] = '\0';
    json_t *interface = o->interface ? json_boolean(host_has_interface(o->interface)) : json_null();
    struct placement_machine parts;
    placement_read_mine(&parts);
    json_t *run_dir = o->run_dir ? json_boolean(probe_holds_job(o->run_dir)) : json_null();
    json_t *answer = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:i}", "host", host, "machine",
        machine, "version", PACKAGE_VERSION, "kernels", isa_level(), "digest", digest, "mpi", mpi,
        "whole", probe_parts_to_json(&parts.whole), "numa", probe_parts_to_json(&parts.numa),
        "sockets", probe_parts_to_json(&parts.sockets), "interface", interface, "run_dir", run_dir,
        "ended", o->run_dir ? probe_end_leftovers(o->run_dir, o->attempt) : 0);
    int bad = !answer || json_dumpf(answer, stdout, JSON_COMPACT) || puts("") < 0;
    json_decref(answer);
    return bad ? 1 : 0;
}
