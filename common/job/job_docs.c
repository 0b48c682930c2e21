/* job-docs schema | man: prints schema/job.schema.json or the list of keys in man/train-job.5 from
 * the table of job options, for "make update-docs". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/job_document.h"
#include "common/job/job_options.h"

#define LINE_MAX_BYTES 78

static void docs_print_wrapped(const char *text)
{
    size_t column = 0;

    while (*text) {
        size_t length = strcspn(text, " ");
        if (column && column + 1 + length > LINE_MAX_BYTES) {
            putchar('\n');
            column = 0;
        }
        column += (size_t)printf("%s%.*s", column ? " " : "", (int)length, text);
        if (text[length] == ' ' && text[length - 1] == '.') {
            putchar('\n');
            column = 0;
        }
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}

static void job_docs_print_row(const struct job_option *o)
{
    char name[64], expects[JOB_OPTION_EXPECTS_BYTES], line[1024];

    snprintf(name, sizeof name, "%s", o->pointer + 1);
    if (strchr(name, '/'))
        *strchr(name, '/') = '.';
    job_option_expects(o, expects);
    printf(".It Cm %s\n", name);
    docs_print_wrapped(o->help);
    snprintf(line, sizeof line, "Takes %s%s%s%s; default %s%s.", expects, o->unit ? " (" : "",
             o->unit ? o->unit : "", o->unit ? ")" : "",
             o->from_data ? "from the training data, otherwise " : "", o->fallback);
    docs_print_wrapped(line);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "man") == 0) {
        for (size_t i = 0; job_option_at(i); i++)
            job_docs_print_row(job_option_at(i));
    } else if (argc == 2 && strcmp(argv[1], "schema") == 0) {
        json_t *schema = job_spec_schema();
        json_dumpf(schema, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
        putchar('\n');
        json_decref(schema);
    } else {
        fputs("usage: job-docs schema|man\n", stderr);
        return 2;
    }
    return 0;
}
