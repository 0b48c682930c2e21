/* train-prep: converts, audits, shows and stages data sets. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/system/file.h"
#include "common/text.h"
#include "config.h"
#include "prep/prep.h"

volatile int prep_interrupted;

static void main_prep_on_signal(int number)
{
    (void)number;
    prep_interrupted = 1;
}

static const struct prep_command *const commands[] = {
    &convert_command, &show_command, &audit_command, &stage_command, &extract_command,
};
#define COMMANDS (sizeof commands / sizeof *commands)

static void main_print_help(FILE *to)
{
    fputs("Usage: train-prep COMMAND [OPTION...]\nCreates, checks, lists and distributes data sets "
          "for traind.\n\n",
          to);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-9s %s\n", commands[i]->name, commands[i]->help);
    fputs(
        "\nSee 'train-prep COMMAND --help' and train-prep(1).\nExit status: 0 done, 1 failed, 2 "
        "wrong use or input, 3 not found, 4 not allowed, 130 interrupted;\nof audit 1 also: there "
        "are problems; of stage 6: the data is invalid, 7: the scratch disk is too small.\n",
        to);
}

static const struct prep_command *main_find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(name, commands[i]->name) == 0)
            return commands[i];
    return NULL;
}

static void main_refuse_command(const char *name)
{
    struct suggest near = {.word = name};

    for (size_t i = 0; i < COMMANDS; i++)
        text_suggest(&near, commands[i]->name);
    fprintf(stderr, "train-prep: unknown command %s", name);
    if (near.best)
        fprintf(stderr, "; did you mean %s?", near.best);
    fputs("\n\n", stderr);
}

static int main_prep_run(const struct prep_command *command, int argc, char **argv)
{
    struct error e;
    int rc = command->run(argc - 1, argv + 1, &e);
    if (rc >= 0)
        return rc;
    fprintf(stderr, "train-prep: %s\n", e.text);
    return error_type(e.code)->exit_code;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = main_prep_on_signal, .sa_flags = SA_RESETHAND};
    const struct prep_command *command = argc > 1 ? main_find_command(argv[1]) : NULL;

    file_refuse_closed_streams();
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)) {
        main_print_help(stdout);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        puts("train-prep " PACKAGE_VERSION);
        return 0;
    }
    if (!command) {
        if (argc > 1)
            main_refuse_command(argv[1]);
        main_print_help(stderr);
        return 2;
    }
    return main_prep_run(command, argc, argv);
}
