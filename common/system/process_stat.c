#include "common/system/process_stat.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELD_STATE   3
#define FIELD_PARENT  4
#define FIELD_SESSION 6
#define FIELD_START   22

bool process_stat_parse(const char *text, struct process_stat *stat)
{
    int64_t fields[FIELD_START + 1] = {0};
    /* The name, field 2, may hold spaces and parentheses: count from the last one. */
    const char *field = strrchr(text, ')');

    if (!field || field[1] != ' ' || !field[2])
        return false;
    field += 2;
    char state = *field;
    for (int number = FIELD_STATE; number < FIELD_START; number++) {
        if (!(field = strchr(field, ' ')))
            return false;
        fields[number + 1] = strtoll(++field, NULL, 10);
    }
    *stat = (struct process_stat){state, fields[FIELD_PARENT], fields[FIELD_SESSION],
                                  fields[FIELD_START]};
    return true;
}

bool process_stat_read(int64_t pid, struct process_stat *stat)
{
    char path[64], text[1024];

    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    return process_stat_parse(text, stat);
}

char *process_variable(int64_t pid, const char *name)
{
    char path[64], *text = NULL, *value = NULL;
    size_t room = 0, length = strlen(name);

    snprintf(path, sizeof path, "/proc/%lld/environ", (long long)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    while (!value && getdelim(&text, &room, '\0', file) > 0)
        if (strncmp(text, name, length) == 0 && text[length] == '=')
            value = strdup(text + length + 1);
    free(text);
    fclose(file);
    return value;
}
