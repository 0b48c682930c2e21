/* attempt-N/hosts.json: what is asked, then with the answers. */
#include "launch/hosts.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/system/file.h"
#include "common/system/host.h"
#include "launch/command.h"

static json_t *hosts_entries_of(const struct job_spec *spec)
{
    json_t *list = json_array();

    for (size_t i = 0; i < spec->cluster.host_count; i++) {
        struct host host;
        host_parse(spec->cluster.hosts[i], &host);
        json_array_append_new(
            list, json_pack("{s:s, s:s}", "entry", spec->cluster.hosts[i], "name", host.name));
    }
    return list;
}

int hosts_write(const struct launch_request *r, const char *attempt_dir, struct error *e)
{
    char path[PATH_MAX];
    int64_t workers = r->spec->cluster.workers_per_node;
    char *agent = command_agent(r);
    json_t *plan = json_pack(
        "{s:s, s:s?, s:s?, s:s, s:s, s:I, s:I, s:I, s:I, s:i, s:b, s:o}", "agent", agent,
        "interface", r->spec->cluster.interface, "mpi_prefix", r->spec->cluster.mpi_prefix,
        "worker", r->worker, "run_dir", r->run_dir, "attempt", (json_int_t)r->attempt, "nodes",
        (json_int_t)r->spec->cluster.nodes, "workers_per_node", (json_int_t)workers, "threads",
        (json_int_t)r->threads, "bind", (int)r->bind, "smt", (int)r->spec->cluster.smt, "hosts",
        hosts_entries_of(r->spec));
    char *text = plan ? json_dumps(plan, JSON_INDENT(1)) : NULL;
    int status = text ? 0 : error_set(e, ERR_NO_MEMORY, "no memory for the job's hosts");

    if (!status && (size_t)snprintf(path, sizeof path, "%s/hosts.json", attempt_dir) >= sizeof path)
        status = error_set(e, ERR_INVALID, "the run directory's path is too long");
    if (!status)
        status = file_write_unsynced(path, text, strlen(text), e);
    json_decref(plan);
    free(agent);
    free(text);
    return status;
}

static json_t *hosts_load(const char *attempt_dir)
{
    char path[PATH_MAX];
    struct error e;

    if ((size_t)snprintf(path, sizeof path, "%s/hosts.json", attempt_dir) >= sizeof path)
        return NULL;
    return json_document_load(path, &e);
}

/* "host n2 does not answer: ..." behind what is there; a few are enough. */
static void hosts_add_problem(FILE *out, size_t count, const char *name, const char *problem)
{
    if (count < 8)
        fprintf(out, "%shost %s %s", count ? "; " : "", name, problem);
    else if (count == 8)
        fputs("; and others", out);
}

bool hosts_read(const char *attempt_dir, struct hosts_found *found)
{
    json_t *plan = hosts_load(attempt_dir), *hosts = json_object_get(plan, "hosts"), *host;
    size_t i, bytes, count = json_array_size(hosts);

    *found = (struct hosts_found){0};
    if (count == 0 || !json_object_get(plan, "asked")) {
        json_decref(plan);
        return false;
    }
    FILE *out = open_memstream(&found->problems, &bytes);
    found->usable = calloc(count + 1, sizeof *found->usable);
    json_array_foreach (hosts, i, host) {
        const char *problem = json_string_value(json_object_get(host, "problem"));
        const char *entry = json_string_value(json_object_get(host, "entry"));
        const char *name = json_string_value(json_object_get(host, "name"));
        if (problem && name && out)
            hosts_add_problem(out, found->problem_count++, name, problem);
        char *copy = !problem && entry && found->usable ? strdup(entry) : NULL;
        if (copy)
            found->usable[found->usable_count++] = copy;
    }
    if (out)
        fclose(out);
    json_decref(plan);
    return true;
}

void hosts_found_clear(struct hosts_found *found)
{
    for (size_t i = 0; i < found->usable_count; i++)
        free(found->usable[i]);
    free(found->usable);
    free(found->problems);
    *found = (struct hosts_found){0};
}

char *hosts_name_of(const char *attempt_dir, const char *machine_host)
{
    json_t *plan = hosts_load(attempt_dir), *hosts = json_object_get(plan, "hosts"), *host;
    char *name = NULL;
    size_t i;

    json_array_foreach (hosts, i, host) {
        const char *own = json_string_value(json_object_get(host, "host"));
        const char *its = json_string_value(json_object_get(host, "name"));
        if (!name && own && its && strcmp(own, machine_host) == 0)
            name = strdup(its);
    }
    json_decref(plan);
    return name;
}

bool hosts_read_taken(const char *attempt_dir, struct hosts_taken *taken)
{
    json_t *plan = hosts_load(attempt_dir), *hosts = json_object_get(plan, "hosts"), *host;
    json_int_t nodes = json_integer_value(json_object_get(plan, "nodes"));
    size_t i, room = json_array_size(hosts); /* nodes may be any number: workers can write there */
    bool whole = true;

    *taken = (struct hosts_taken){0};
    taken->names = calloc(room + 1, sizeof *taken->names);
    taken->machines = calloc(room + 1, sizeof *taken->machines);
    json_array_foreach (hosts, i, host) {
        const char *machine = json_string_value(json_object_get(host, "host"));
        const char *name = json_string_value(json_object_get(host, "name"));
        bool used = machine && name && !json_object_get(host, "problem") &&
                    (json_int_t)taken->count < nodes;
        if (!used || !taken->names || !taken->machines)
            continue;
        taken->names[taken->count] = strdup(name);
        taken->machines[taken->count] = strdup(machine);
        whole = whole && taken->names[taken->count] && taken->machines[taken->count];
        taken->count++;
    }
    json_decref(plan);
    if (whole && taken->count > 0)
        return true;
    hosts_taken_clear(taken);
    return false;
}

void hosts_taken_clear(struct hosts_taken *taken)
{
    for (size_t i = 0; i < taken->count; i++) {
        free(taken->names[i]);
        free(taken->machines[i]);
    }
    free(taken->names);
    free(taken->machines);
    *taken = (struct hosts_taken){0};
}
