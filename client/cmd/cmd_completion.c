/* trainctl completion: the script by which a shell completes trainctl's command line. */
#include <stdio.h>
#include <string.h>

#include "client/cmd.h"

extern const char *const cmd_completions[][2]; /* shell, script: by etc/completions/embed.sh */

static const char *completion_shell_at(size_t i)
{
    return cmd_completions[i][0];
}

static int cmd_completion(const struct cmd_args *args)
{
    const char *shell = args->operands[0];
    struct error e;

    if (cmd_word(shell, "script for the shell", completion_shell_at, &e))
        return cmd_fail(&e);
    for (size_t i = 0; cmd_completions[i][0]; i++)
        if (strcmp(cmd_completions[i][0], shell) == 0)
            fputs(cmd_completions[i][1], stdout);
    return 0;
}

/* clang-format off */
const struct cmd cmd_completion_entry = {
    .name = "completion", .synopsis = "bash|zsh|fish",
    .help = "print a completion script, as in: source <(trainctl completion bash)", .example = "trainctl completion bash",
    .run = cmd_completion, .completion = "bash|zsh|fish", .operands = {1, 1},
};
/* clang-format on */
