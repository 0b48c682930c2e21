#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cmd.h"
#include "client/views/format.h"
#include "client/views/print.h"
#include "client/views/table.h"
#include "common/json.h"

static void provenance_row(struct libscols_table *table, const char *name, const json_t *value)
{
    if (!value || json_is_null(value) || (json_is_string(value) && !*json_string_value(value)))
        return;
    char *text = print_value(value);
    table_row(table, name, text, NULL);
    free(text);
}

static const char *const attempt_rows[][2] = {
    {"world_size",         "workers"           },
    {"threads_per_worker", "threads per worker"},
    {"batch_per_worker",   "batch per worker"  },
    {"accumulate_steps",   "batches per step"  },
    {"winograd",           "Winograd"          },
    {"gradients",          "gradients summed"  },
    {"job",                "job (xxh128)"      },
    {"plan",               "plan (xxh128)"     },
};
static const char *const machine_rows[][2] = {
    {"ranks",           "ranks"           },
    {"version",         "train-worker"    },
    {"build_id",        "build id"        },
    {"kernels",         "kernels"         },
    {"bf16",            "bf16"            },
    {"openblas",        "OpenBLAS"        },
    {"openblas_config", "OpenBLAS's build"},
    {"mpi",             "MPI"             },
    {"cpu",             "processor"       },
    {"microcode",       "microcode"       },
    {"flags",           "its features"    },
    {"kernel",          "kernel"          },
};
static const char *const result_rows[][2] = {
    {"status",      "status"              },
    {"steps",       "steps"               },
    {"weights",     "weights (xxh128)"    },
    {"losses",      "losses (xxh128)"     },
    {"evaluations", "evaluations (xxh128)"},
};

static void provenance_rows(struct libscols_table *table, const json_t *object,
                            const char *const rows[][2], size_t count)
{
    for (size_t i = 0; i < count; i++)
        provenance_row(table, rows[i][1], json_object_get(object, rows[i][0]));
}
#define ROWS(table, object, rows)                                                                  \
    provenance_rows(table, object, rows, sizeof(rows) / sizeof(rows)[0])

static struct libscols_table *provenance_table(const char *title)
{
    printf("\n%s\n", title);
    return table_create(0, "what,value|");
}

static void provenance_print_data(struct libscols_table *table, const char *name,
                                  const json_t *data)
{
    char date[FORMAT_BYTES];

    if (!json_is_object(data))
        return;
    json_t *text = json_sprintf(
        "%s: %lld images, index %s, changed %s", json_get_text(data, "path", ""),
        (long long)json_get_integer(data, "images", 0), json_get_text(data, "xxh128", ""),
        format_date(date, sizeof date, json_get_number(data, "changed", NAN)));
    provenance_row(table, name, text);
    json_decref(text);
}

static void provenance_print_machine(const json_t *machine)
{
    const json_t *hosts = json_object_get(machine, "hosts"), *value;
    char title[256] = "";
    const char *name;
    size_t i;

    json_array_foreach (hosts, i, value) {
        size_t used = strlen(title);
        snprintf(title + used, sizeof title - used, "%s%.60s", i ? ", " : "",
                 json_string_value(value) ? json_string_value(value) : "");
    }
    struct libscols_table *table = provenance_table(title);
    ROWS(table, machine, machine_rows);
    json_object_foreach (json_object_get(machine, "libraries"), name, value)
        provenance_row(table, name, value);
    json_object_foreach (json_object_get(machine, "environment"), name, value)
        provenance_row(table, name, value);
    table_finish(table);
}

static void provenance_print_attempt(const json_t *attempt)
{
    const json_t *machine, *data = json_object_get(attempt, "data");
    const json_t *weights = json_object_get(attempt, "weights");
    char title[64], date[FORMAT_BYTES];
    size_t i;

    snprintf(title, sizeof title, "attempt %lld, %s",
             (long long)json_get_integer(attempt, "attempt", 0),
             format_date(date, sizeof date, json_get_number(attempt, "started_at", NAN)));
    struct libscols_table *table = provenance_table(title);
    ROWS(table, attempt, attempt_rows);
    json_t *text = json_sprintf("%s of step %lld, xxh128 %s", json_get_text(weights, "path", ""),
                                (long long)json_get_integer(weights, "step", 0),
                                json_get_text(weights, "xxh128", ""));
    if (json_is_object(weights))
        provenance_row(table, "initial weights", text);
    json_decref(text);
    provenance_print_data(table, "training data", json_object_get(data, "train"));
    provenance_print_data(table, "evaluation data", json_object_get(data, "eval"));
    ROWS(table, json_object_get(attempt, "result"), result_rows);
    table_finish(table);
    json_array_foreach (json_object_get(attempt, "machines"), i, machine)
        provenance_print_machine(machine);
}

static void provenance_print(const json_t *answer)
{
    const json_t *attempts = json_object_get(answer, "attempts"), *attempt,
                 *traind = json_object_get(answer, "daemon");
    size_t i;

    print_prose("job %lld, submitted by %s; traind %s, build %s, SQLite %s",
                (long long)json_get_integer(answer, "job", 0),
                json_get_text(answer, "submitted_by", "an unknown user"),
                json_get_text(traind, "version", ""),
                json_get_text(traind, "build_id", "not known"),
                json_get_text(traind, "sqlite", ""));
    if (json_get_integer(answer, "reproduces", 0))
        printf("It reproduces job %lld.\n", (long long)json_get_integer(answer, "reproduces", 0));
    json_array_foreach (json_object_get(answer, "reproduced_by"), i, attempt)
        printf("Job %lld reproduces it.\n", (long long)json_integer_value(attempt));
    if (json_array_size(attempts) == 0)
        print_prose(
            "Nothing was recorded about its run: it has not started to compute, or an older "
            "version ran it.");
    json_array_foreach (attempts, i, attempt)
        provenance_print_attempt(attempt);
}

/* clang-format off */
const struct cmd cmd_provenance_entry = {
    .name = "provenance", .synopsis = "ID",
    .help = "show the provenance of a job: programs, libraries, processors, data", .example = "trainctl provenance 7",
    .run = cmd_show_of_job, .document = "/provenance", .print = provenance_print, .completion = "job", .operands = {1, 1},
};
/* clang-format on */
