#include "common/system/cpuinfo.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *cpuinfo_value(const char *name)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    size_t length = strlen(name), room = 0;
    char *line = NULL, *value = NULL;

    /* By getline: newer processors have 2,000 bytes of flags. */
    while (file && !value && getline(&line, &room, file) > 0) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, name, length) != 0 || !isspace((unsigned char)line[length]))
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        value = strndup(colon, strcspn(colon, "\n"));
    }
    free(line);
    if (file)
        fclose(file);
    return value;
}
