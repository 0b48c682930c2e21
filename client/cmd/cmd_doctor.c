#include <curl/curl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/local.h"
#include "client/views/format.h"
#include "client/views/table.h"
#include "common/check.h"
#include "common/json.h"
#include "common/system/file.h"
#include "common/system/install_paths.h"
#include "common/system/spawn.h"
#include "common/text.h"
#include "common/xalloc.h"
#include "launch/launch.h"

#define CHECK_LIMIT_BYTES 65536

static bool doctor_first_line(char *const *argv, char *line, size_t bytes)
{
    bool ok = spawn_output(argv, line, bytes);

    line[strcspn(line, "\n")] = '\0';
    return ok;
}

static void doctor_check_program(json_t *list, const char *check, const char *path,
                                 const char *advice)
{
    char line[128], *argv[] = {(char *)path, (char *)"--version", NULL};
    bool ok = doctor_first_line(argv, line, sizeof line);

    if (ok)
        check_note(list, check, true, NULL, "%s", line);
    else
        check_note(list, check, false, advice, "cannot run %s", path);
}

static void doctor_check_programs(json_t *list)
{
    char line[128], *slurm[] = {(char *)"sinfo", (char *)"--version", NULL}, *worker = NULL;
    char *self_check[] = {NULL, (char *)"--self-check", (char *)"--json", NULL};
    char *text = xmalloc(CHECK_LIMIT_BYTES);
    struct error e;

    doctor_check_program(
        list, "MPI", MPIRUN,
        "install Open MPI: apt-get install openmpi-bin, or set mpirun in traind.conf");
    if (local_find_worker(&worker, &e)) {
        check_note(list, "worker", false, "make install, or set worker in traind.conf", "%s",
                   e.text);
    } else {
        doctor_check_program(list, "worker", worker, "make install, or set worker in traind.conf");
        self_check[0] = worker;
        json_t *report =
            spawn_output(self_check, text, CHECK_LIMIT_BYTES) ? json_loads(text, 0, NULL) : NULL;
        json_array_extend(list, json_object_get(report, "checks"));
        json_decref(report);
    }
    free(text);
    free(worker);
    bool ok = doctor_first_line(slurm, line, sizeof line);
    check_note(list, "Slurm", true, NULL, "%s", ok ? line : "not installed (optional)");
}

/* Only the state folder next to the daemon's socket is known here. */
static void doctor_check_state(json_t *list)
{
    const char *path = strncmp(client.server, "unix:", 5) == 0 ? client.server + 5 : "";
    const char *end = strrchr(path, '/');
    char state[PATH_MAX], database[PATH_MAX];

    file_path(state, NULL, "%.*s", end ? (int)(end - path) : 0, path);
    if (*state && file_path(database, NULL, "%s/traind.db", state) == 0 &&
        access(database, F_OK) == 0)
        check_disk(list, "disk", state,
                   "free some space, or set keep_runs and keep_checkpoints in traind.conf");
    else
        check_note(list, "disk", true, NULL,
                   "checked by the daemon, which reports not ready when it is full");
}

static void doctor_check_daemon(json_t *list)
{
    char size[FORMAT_BYTES];
    struct error e;
    json_t *ready, *jobs;

    if (api_get("/readyz", &ready, &e) < 0) {
        check_note(list, "daemon", false, "start traind, or specify it with --server; see its log",
                   "%s", e.text);
        return;
    }
    const json_t *slots = json_object_get(ready, "slots");
    long long total = json_integer_value(json_object_get(slots, "total")),
              used = json_integer_value(json_object_get(slots, "used")),
              cores = launch_node_slots(false);
    check_note(list, "daemon", true, NULL, "ready at %s", client.server);
    if (json_is_false(json_object_get(ready, "require_token")))
        check_note(list, "access", false,
                   "remove require_token = no from traind.conf and restart traind: access is then "
                   "granted by the unix socket and by tokens",
                   "every user of the daemon's machine can read and submit without a token");
    else
        check_note(list, "access", true, NULL, "by user over the unix socket, by token over TCP");
    check_note(
        list, "slots", total <= cores || total == 0,
        "slots in traind.conf exceeds the number of cores of this machine: jobs will be slow",
        "%lld, of which %lld %s in use; this machine has %lld core%s", total, used,
        used == 1 ? "is" : "are", cores, plural(cores));
    json_decref(ready);
    if (api_get("/v1/jobs?limit=1", &jobs, &e))
        return;
    format_size(size, sizeof size, json_get_number(jobs, "disk_bytes", NAN));
    check_note(list, "jobs", true, NULL, "%s on disk", size);
    json_decref(jobs);
}

static void doctor_print(const json_t *list)
{
    struct libscols_table *table = table_create(0, ",,|");
    const json_t *item;
    size_t i;

    json_array_foreach (list, i, item) {
        const char *word = check_word(item), *advice = json_get_text(item, "advice", "");
        struct libscols_line *line = table_line(table);
        table_set(line, 0, word);
        table_set_color(line, 0, *word == 'B' ? "red" : *word == 'w' ? "yellow" : NULL);
        table_set(line, 1, json_get_text(item, "check", ""));
        table_set(line, 2, json_get_text(item, "found", ""));
        if (*advice)
            table_set(table_line(table), 2, advice);
    }
    table_finish(table);
}

#define TEXT_BYTES  262144
#define VALUE_BYTES 1024
#define SCRIPTS     PKGDATADIR "/slurm"

static const char *doctor_slurm_setting(const char *config, const char *key,
                                        char value[VALUE_BYTES])
{
    size_t length = strlen(key);

    value[0] = '\0';
    for (const char *line = config; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) != 0 || (line[length] != ' ' && line[length] != '='))
            continue;
        const char *equals = strchr(line, '=');
        if (!equals)
            break;
        equals += 1 + strspn(equals + 1, " ");
        snprintf(value, VALUE_BYTES, "%.*s", (int)strcspn(equals, "\n"), equals);
        break;
    }
    if (strcmp(value, "(null)") == 0)
        value[0] = '\0';
    return value;
}

static bool doctor_slurm_is_chained(const char *path, const char *ours)
{
    char *text;
    size_t bytes;
    bool found = strcmp(path, ours) == 0;

    if (!found && file_read(path, TEXT_BYTES, &text, &bytes, NULL) == 0) {
        const char *name = strrchr(ours, '/');
        found = strstr(text, ours) || (strstr(text, "slurm") && strstr(text, name));
        free(text);
    }
    return found;
}

static void doctor_slurm_check_script(json_t *list, const char *config, const char *key,
                                      const char *name)
{
    char path[VALUE_BYTES], ours[VALUE_BYTES], advice[2 * VALUE_BYTES];

    snprintf(ours, sizeof ours, SCRIPTS "/%s", name);
    doctor_slurm_setting(config, key, path);
    /* Newer versions list them as Prolog[0], Prolog[1], ... */
    for (int i = 0; !*path || !doctor_slurm_is_chained(path, ours); i++) {
        char listed[32], other[VALUE_BYTES];
        snprintf(listed, sizeof listed, "%s[%d]", key, i);
        if (!*doctor_slurm_setting(config, listed, other))
            break;
        memcpy(path, other, sizeof other);
    }
    if (!*path) {
        snprintf(advice, sizeof advice,
                 "add %s=%s to slurm.conf, on all nodes, and run scontrol reconfigure", key, ours);
        check_note(list, key, false, advice, "is not set in slurm.conf");
    } else if (access(path, X_OK)) {
        check_note(list, key, false, "it must be there, and executable, on all nodes",
                   "%s is not an executable file here", path);
    } else if (!doctor_slurm_is_chained(path, ours)) {
        snprintf(advice, sizeof advice, "let it call traind's at its end, for example: exec %s",
                 ours);
        check_note(list, key, false, advice, "%s does not call traind's %s", path, name);
    } else {
        check_note(list, key, true, NULL, "%s", path);
    }
}

static void doctor_check_word(json_t *list, const char *config, const char *key, const char *word,
                              const char *advice)
{
    char value[VALUE_BYTES];

    doctor_slurm_setting(config, key, value);
    check_note(list, key, strcasestr(value, word) != NULL, advice, "%.200s",
               *value ? value : "is not set");
}

/* Gets the last assignment of the name, without quotes; "" if it is missing. */
static char *doctor_slurm_node_setting(const char *text, const char *name, char value[VALUE_BYTES])
{
    size_t length = strlen(name);

    value[0] = '\0';
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) != 0 || line[length] != '=')
            continue;
        const char *at = line + length + 1;
        char quote = *at == '"' || *at == '\'' ? *at++ : '\n';
        size_t end = 0;
        while (at[end] && at[end] != quote && at[end] != '\n')
            end++;
        snprintf(value, VALUE_BYTES, "%.*s", (int)end, at);
    }
    return value;
}

static void doctor_slurm_check_token(json_t *list, const char *path)
{
    struct stat st;

    if (!*path) {
        check_note(list, "token", true, NULL, "not set; needed only if traind requires one");
    } else if (stat(path, &st)) {
        check_note(list, "token", false,
                   "trainctl token create --role node nodes >FILE; chmod 600 FILE, on all nodes",
                   "token_file %s does not exist", path);
    } else {
        check_note(list, "token", (st.st_mode & 077) == 0, "chmod 600, owned by root",
                   "%s has mode %03o", path, (unsigned)st.st_mode & 0777);
    }
}

static void doctor_slurm_check_node_conf(json_t *list, const char *config)
{
    const char *path = getenv("TRAIND_NODE_CONF");
    char value[VALUE_BYTES], advice[VALUE_BYTES], *text;
    struct error e;
    size_t bytes;

    if (!path || !*path)
        path = SYSCONFDIR "/traind-node.conf";
    if (file_read(path, TEXT_BYTES, &text, &bytes, &e)) {
        check_note(list, "node.conf", false,
                   "install it on all nodes: without it jobs start unchecked", "%s", e.text);
        return;
    }
    check_note(list, "node.conf", true, NULL, "%s", path);
    doctor_slurm_node_setting(text, "runs", value);
    check_note(list, "runs", access(value, X_OK) == 0,
               "runs must be the folder jobs of traind's state, on a file system that all nodes "
               "mount under this name",
               "%s", *value ? value : "is not set");
    doctor_slurm_check_token(list, doctor_slurm_node_setting(text, "token_file", value));
    double staging = *doctor_slurm_node_setting(text, "stage", value)
                         ? atof(doctor_slurm_node_setting(text, "stage_seconds", value))
                         : 0;
    double seconds = atof(doctor_slurm_setting(config, "BatchStartTimeout", value));
    snprintf(advice, sizeof advice,
             "set BatchStartTimeout=%.0f in slurm.conf: the prolog must have ended by then, or the "
             "job is given up",
             20 + staging);
    check_note(list, "BatchStart", seconds >= 20 + staging, advice, "BatchStartTimeout is %.0f s",
               seconds);
    free(text);
}

static int doctor_count_lines(const char *text)
{
    int lines = 0;

    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static void doctor_slurm_check_partitions(json_t *list, char *text)
{
    char *argv[] = {(char *)"sinfo", (char *)"-h", (char *)"-o", (char *)"%P", NULL};
    char *down[] = {(char *)"sinfo", (char *)"-h",     (char *)"-R",
                    (char *)"-o",    (char *)"%N: %E", NULL};
    bool any = spawn_output(argv, text, TEXT_BYTES);

    for (char *c = text; *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    check_note(list, "partitions", any, "add a PartitionName line to slurm.conf", "%.200s",
               any ? text : "none");
    if (!spawn_output(down, text, TEXT_BYTES))
        text[0] = '\0';
    int bad = doctor_count_lines(text);
    text[strcspn(text, "\n")] = '\0';
    check_note(
        list, "drained", bad == 0,
        "repair them, then run: scontrol update nodename=NODE state=resume (sinfo -R lists all)",
        bad ? "%d lines of drained nodes, such as %.200s" : "no node is drained", bad, text);
}

static void doctor_slurm_check_reports(json_t *list, char *text)
{
    char *argv[] = {(char *)"sinfo", (char *)"-h", (char *)"-N", (char *)"-o", (char *)"%N", NULL};
    json_t *answer = NULL;
    struct error e;

    if (!spawn_output(argv, text, TEXT_BYTES) || api_get("/v1/nodes?limit=1", &answer, &e) < 0)
        return;
    long long reported =
        json_get_integer(answer, "total", 1) - 1; /* excludes traind's own machine */
    check_note(
        list, "reports", reported > 0,
        "a node reports when it gets its first job of traind; see slurmd's log for the output "
        "of its prolog",
        "%lld nodes have reported, and Slurm lists %d", reported, doctor_count_lines(text));
    json_decref(answer);
}

static void doctor_slurm(json_t *list)
{
    char *config_argv[] = {(char *)"scontrol", (char *)"show", (char *)"config", NULL};
    char *mpi_argv[] = {(char *)"srun", (char *)"--mpi=list", NULL};
    char *config = xmalloc(TEXT_BYTES), *text = xmalloc(TEXT_BYTES), value[VALUE_BYTES];

    if (!spawn_output(config_argv, config, TEXT_BYTES) ||
        !*doctor_slurm_setting(config, "ClusterName", value)) {
        check_note(list, "slurmctld", false,
                   "install slurm-client, start munged with the cluster's key, and let SLURM_CONF "
                   "name its slurm.conf; check with scontrol ping",
                   "does not answer on this machine");
    } else {
        check_note(list, "slurmctld", true, NULL, "answers; cluster %s", value);
        doctor_slurm_setting(config, "AuthType", value);
        check_note(list, "auth", true, NULL, "%s works here", value);
        doctor_slurm_check_script(list, config, "Prolog", "prolog");
        doctor_slurm_check_script(list, config, "Epilog", "epilog");
        doctor_slurm_check_script(list, config, "TaskProlog", "task-prolog");
        doctor_check_word(
            list, config, "PrologFlags", "Alloc",
            "set PrologFlags=Alloc: else a job's other nodes are checked when it has begun");
        doctor_check_word(
            list, config, "SchedulerParameters", "nohold_on_prolog_fail",
            "add nohold_on_prolog_fail: otherwise a job whose node is drained is held until "
            "someone releases it");
        doctor_slurm_check_node_conf(list, config);
        bool pmix = spawn_output(mpi_argv, text, TEXT_BYTES) && strstr(text, "pmix");
        check_note(list, "PMIx", pmix,
                   "install slurm-wlm-basic-plugins, or leave slurm.start at mpirun",
                   pmix ? "srun supports --mpi=pmix" : "srun does not support --mpi=pmix");
        doctor_slurm_check_partitions(list, text);
        doctor_slurm_check_reports(list, text);
    }
    free(config);
    free(text);
}

static int cmd_doctor(const struct cmd_args *args)
{
    json_t *list = json_array();

    check_note(list, "libraries", true, NULL, "libcurl %s, jansson %s",
               curl_version_info(CURLVERSION_NOW)->version, jansson_version_str());
    doctor_check_programs(list);
    doctor_check_state(list);
    doctor_check_daemon(list);
    if (cmd_flag(args, "slurm"))
        doctor_slurm(list);
    bool all = check_all_ok(list);
    cmd_show_answer(list, doctor_print);
    return all ? 0 : error_type(ERR_INTERNAL)->exit_code;
}

/* clang-format off */
const struct cmd cmd_doctor_entry = {
    .name = "doctor", .synopsis = "[--slurm]", .help = "check an installation; exit 1 if something is wrong", .example = "trainctl doctor",
    .run = cmd_doctor,
    .options = {
        OPTION("slurm", 0, NULL, "also check what Slurm jobs need: slurm.conf, prolog, settings, nodes", NULL),
    },
};
/* clang-format on */
