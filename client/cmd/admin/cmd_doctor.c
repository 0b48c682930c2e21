#include <curl/curl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/api.h"
#include "client/cmd.h"
#include "client/cmd/admin/doctor.h"
#include "client/local.h"
#include "client/views/format.h"
#include "client/views/table.h"
#include "common/check.h"
#include "common/json.h"
#include "common/system/install_paths.h"
#include "common/system/spawn.h"
#include "common/text.h"
#include "launch/launch.h"

#define CHECK_LIMIT_BYTES 65536 /* of what a program prints */

/* ---------------------------------------------------------------- programs */

static bool cmd_doctor_first_line(char *const *argv, char *line, size_t bytes)
{
    bool ok = spawn_output(argv, line, bytes);

    line[strcspn(line, "\n")] = '\0';
    return ok;
}

static void cmd_doctor_check_program(json_t *list, const char *check, const char *path,
                                     const char *advice)
{
    char line[128], *argv[] = {(char *)path, (char *)"--version", NULL};
    bool ok = cmd_doctor_first_line(argv, line, sizeof line);

    if (ok)
        check_note(list, check, true, NULL, "%s", line);
    else
        check_note(list, check, false, advice, "%s cannot be run", path);
}

/* What the worker finds of this machine. */
static void doctor_check_machine(json_t *list, const char *worker)
{
    char *argv[] = {(char *)worker, (char *)"--self-check", (char *)"--json", NULL};
    char *text = malloc(CHECK_LIMIT_BYTES);

    if (text && spawn_output(argv, text, CHECK_LIMIT_BYTES)) {
        json_t *report = json_loads(text, 0, NULL);
        json_array_extend(list, json_object_get(report, "checks"));
        json_decref(report);
    }
    free(text);
}

static void cmd_doctor_check_programs(json_t *list)
{
    char line[128], *slurm[] = {(char *)"sinfo", (char *)"--version", NULL}, *worker = NULL;
    struct error e;

    cmd_doctor_check_program(
        list, "MPI", MPIRUN,
        "install Open MPI: apt-get install openmpi-bin, or set mpirun in traind.conf");
    if (local_find_worker(&worker, &e)) {
        check_note(list, "worker", false, "make install, or set worker in traind.conf", "%s",
                   e.text);
    } else {
        cmd_doctor_check_program(list, "worker", worker,
                                 "make install, or set worker in traind.conf");
        doctor_check_machine(list, worker);
    }
    free(worker);
    bool ok = cmd_doctor_first_line(slurm, line, sizeof line);
    check_note(list, "Slurm", true, NULL, "%s", ok ? line : "not installed (optional)");
}

/* ---------------------------------------------------------------- the machine and the daemon */

/* The daemon's state folder is that of its socket; where one reached by TCP has its own is not
 * known here. */
static void doctor_check_state(json_t *list)
{
    const char *path = strncmp(client.server, "unix:", 5) == 0 ? client.server + 5 : "";
    const char *end = strrchr(path, '/');
    char state[PATH_MAX], database[PATH_MAX + 16];

    snprintf(state, sizeof state, "%.*s", end ? (int)(end - path) : 0, path);
    snprintf(database, sizeof database, "%s/traind.db", state);
    if (*state && access(database, F_OK) == 0)
        check_disk(list, "disk", state,
                   "make room, or set keep_runs and keep_checkpoints in traind.conf");
    else
        check_note(list, "disk", true, NULL,
                   "checked by the daemon, which is not ready when it is full");
}

static void doctor_check_jobs(json_t *list)
{
    char size[FORMAT_BYTES];
    struct error e;
    json_t *answer;

    if (api_get("/v1/jobs?limit=1", &answer, &e) < 0)
        return;
    format_size(size, sizeof size, json_get_number(answer, "disk_bytes", NAN));
    check_note(list, "jobs", true, NULL, "%s on disk", size);
    json_decref(answer);
}

static void cmd_doctor_check_daemon(json_t *list)
{
    struct error e;
    json_t *ready;

    if (api_get("/readyz", &ready, &e) < 0) {
        check_note(list, "daemon", false, "start traind, or name it with --server; see its log",
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
        check_note(list, "access", true, NULL, "by the unix socket's user, and by tokens over TCP");
    check_note(
        list, "slots", total <= cores || total == 0,
        "slots in traind.conf exceeds the number of cores of this machine: jobs will be slow",
        "%lld, of which %lld %s in use; this machine has %lld core%s", total, used,
        used == 1 ? "is" : "are", cores, plural(cores));
    json_decref(ready);
    doctor_check_jobs(list);
}

/* A line an item, the advice below it where there is some. */
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

static int cmd_doctor(const struct cmd_args *args)
{
    json_t *list = json_array();

    check_note(list, "libraries", true, NULL, "libcurl %s, jansson %s",
               curl_version_info(CURLVERSION_NOW)->version, jansson_version_str());
    cmd_doctor_check_programs(list);
    doctor_check_state(list);
    cmd_doctor_check_daemon(list);
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
