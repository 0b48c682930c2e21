/* Settings: defaults, precedence, refusals. The words of each refusal:
 * tests/api/service/lifecycle.sh. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config.h"

static struct error e;

/* Loads text as a settings file into *c. */
static int load_config(struct config *c, const char *text)
{
    char path[] = "/tmp/traind-config-XXXXXX";
    int fd = mkstemp(path);

    cr_assert(fd >= 0 && dprintf(fd, "%s", text) >= 0);
    close(fd);
    int status = config_load(c, path, &e);
    unlink(path);
    return status;
}

Test(config, an_empty_file_gives_the_defaults)
{
    struct config c = {0};

    unsetenv("TRAIND_STATE");
    cr_assert_eq(load_config(&c, ""), 0, "%s", e.text);
    cr_assert_str_eq(c.listen, "127.0.0.1:7077");
    cr_assert_eq(c.max_body_bytes, 1048576);
    cr_assert_eq(c.log_level, LOG_LEVEL_INFO);
    cr_assert(c.jobs.slots >= 1, "0 is the number of cores");
    cr_assert_eq(c.state[0], '/');
    cr_assert_eq(strncmp(c.socket, c.state, strlen(c.state)), 0,
                 "the socket is in the state folder");
    config_clear(&c);
}

Test(config, every_default_is_within_its_own_range)
{
    for (size_t i = 0; config_key_at(i); i++) {
        const struct config_key *key = config_key_at(i);
        struct config c = {0};
        if (key->default_text)
            cr_assert_eq(config_set(&c, key->name, key->default_text, "test", &e), 0, "%s", e.text);
        cr_assert(i < 8 * sizeof c.given, "each key has its bit in given");
        config_clear(&c);
    }
}

Test(config, prefixes_of_variables_are_beginnings_of_names)
{
    static const struct {
        const char *list, *wrong; /* NULL: right */
    } cases[] = {
        {"none",            NULL                       },
        {"OMP_  OMPI_MCA_", NULL                       },
        {"OMP_,UCX_",       "OMP_,UCX_"                },
        {"OMP_ 1X",         "1X"                       },
        {"OMP_ $HOME",      "$HOME"                    },
        {"OMP_ LD_",        "begin with LD_ are never" },
        {"OMP_ PATH",       "begin with PATH are never"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct config c = {0};
        cr_assert_eq(config_set(&c, "job_env_prefixes", cases[i].list, "test", &e), 0);
        cr_assert_eq(load_config(&c, ""), 0, "%s", e.text);
        cr_assert_eq(config_check(&c, &e) == 0, cases[i].wrong == NULL, "%s", cases[i].list);
        if (cases[i].wrong)
            cr_assert_not_null(strstr(e.text, cases[i].wrong), "%s", e.text);
        config_clear(&c);
    }
}

Test(config, the_command_line_wins_over_the_environment_and_that_over_the_file)
{
    struct config c = {0};

    setenv("TRAIND_STATE", "/environment", 1);
    cr_assert_eq(config_set(&c, "listen", "127.0.0.1:1", "--listen", &e), 0);
    cr_assert_eq(load_config(&c, "listen = 127.0.0.1:2\nstate = /file\nslots = 3\n"), 0, "%s",
                 e.text);
    cr_assert_str_eq(c.listen, "127.0.0.1:1");
    cr_assert_str_eq(c.state, "/environment");
    cr_assert_eq(c.jobs.slots, 3);
    config_clear(&c);
    cr_assert_eq(config_set(&c, "state", "/line", "--state", &e), 0);
    cr_assert_eq(load_config(&c, "state = /file\n"), 0);
    cr_assert_str_eq(c.state, "/line");
    cr_assert_str_eq(c.socket, "/line/traind.sock");
    config_clear(&c);
}

Test(config, a_value_hidden_by_the_command_line_is_checked_all_the_same)
{
    struct config c = {0};

    cr_assert_eq(config_set(&c, "slots", "2", "--slots", &e), 0);
    cr_assert_eq(load_config(&c, "slots = lots\n"), -ERR_USAGE);
    cr_assert_eq(c.jobs.slots, 2);
    config_clear(&c);
}

Test(config, wrong_lines_are_refused)
{
    static const char *const bad[] = {"colour = red\n",   "slots = 5000\n",
                                      "slots = 1x\n",     "listen =\n",
                                      "[a]\nslots = 1\n", "slots = 1\nslots = 1\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct config c = {0};
        cr_assert_eq(load_config(&c, bad[i]), -ERR_USAGE, "%s", bad[i]);
        config_clear(&c);
    }
}

Test(config, relative_folders_become_absolute)
{
    struct config c = {0};

    cr_assert_eq(config_set(&c, "state", "some/where", "--state", &e), 0);
    cr_assert_eq(load_config(&c, ""), 0);
    cr_assert_eq(c.state[0], '/');
    cr_assert_not_null(strstr(c.state, "/some/where"));
    config_clear(&c);
}
