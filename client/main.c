#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cmd.h"
#include "client/complete.h"
#include "client/context.h"
#include "common/text.h"
#include "common/system/process.h"
#include "common/system/file.h"
#include "config.h"
#include "launch/hosts.h"

static int main_unknown_command(const char *name)
{
    static const struct {
        const char *word, *command;
    } others[] = {
        {"ls",       "list"  },
        {"describe", "show"  },
        {"ps",       "list"  },
        {"queue",    "list"  },
        {"get",      "show"  },
        {"status",   "show"  },
        {"delete",   "rm"    },
        {"remove",   "rm"    },
        {"kill",     "cancel"},
        {"mv",       "rename"},
        {"label",    "tag"   },
        {"log",      "logs"  },
        {"top",      "watch" },
        {"follow",   "watch" },
    };
    struct suggest near = {.word = name};

    for (size_t i = 0; cmd_at(i); i++)
        text_suggest(&near, cmd_at(i)->name);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(name, others[i].word) == 0)
            near.best = others[i].command;
    if (near.best)
        return cmd_usage(NULL, "there is no command \"%s\"; did you mean \"%s\"?", name, near.best);
    return cmd_usage(NULL, "there is no command \"%s\"", name);
}

static int main_help(char **words)
{
    const char *name = words[0];
    const struct cmd *cmd = name ? cmd_find(name) : NULL;

    if (name && !cmd)
        return main_unknown_command(name);
    if (name && words[1])
        return cmd_usage(NULL, "unexpected argument \"%s\". Usage: trainctl help [COMMAND]",
                         words[1]);
    if (cmd)
        cmd_print_help(stdout, cmd);
    else
        cmd_print_overview(stdout);
    return 0;
}

static int main_run(int argc, char **argv)
{
    int code = 0;

    if (argc > 1 && strcmp(argv[1], "__complete") == 0)
        return complete(argc - 2, argv + 2);
    int first = cmd_parse_common(argc, argv, &code);
    if (first < 0)
        return code;
    const char *name = argv[first];
    if (strcmp(name, "help") == 0)
        return main_help(argv + first + 1);
    if (strcmp(name, "version") == 0)
        return puts("trainctl " PACKAGE_VERSION) < 0;
    const struct cmd *cmd = cmd_find(name);
    if (!cmd)
        return main_unknown_command(name);
    struct cmd_args args;
    code = cmd_parse(&args, argc - first, argv + first);
    server_choose();
    return code >= 0 ? code : cmd->run(&args);
}

int main(int argc, char **argv)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    file_refuse_closed_streams();
    if (argc > 3 && strcmp(argv[1], HOSTS_LAUNCH) == 0)
        return hosts_launch(argv + 2);
    setlocale(LC_CTYPE, "");
    process_forbid_core_dump();
    client.server = NULL;
    client.color =
        isatty(STDOUT_FILENO) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
    int code = main_run(argc, argv);
    bool unwritten = fflush(stdout) || ferror(stdout);
    if (unwritten && code == 0) {
        struct error e;
        error_set(&e, ERR_IO, "cannot write to standard output");
        code = cmd_fail(&e);
    }
    return code;
}
