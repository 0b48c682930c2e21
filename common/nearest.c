#include "common/nearest.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define LENGTH_MAX 64

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Optimal string alignment distance over three rolling rows. */
static int distance(const char *a, const char *b)
{
    int rows[3][LENGTH_MAX + 1];
    int n = (int)strlen(a), m = (int)strlen(b);

    if (n > LENGTH_MAX || m > LENGTH_MAX)
        return LENGTH_MAX;
    for (int j = 0; j <= m; j++)
        rows[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            now[j] = least(least(now[j - 1], last[j]) + 1, last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                tolower((unsigned char)a[i - 2]) == y)
                now[j] = least(now[j], before[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

const char *nearest_name(const char *word, const char *const *names, size_t count)
{
    size_t length = strlen(word);
    int allowed = length < 3 ? 1 : (int)(length + 2) / 3;
    const char *best = NULL;

    for (size_t i = 0; i < count; i++) {
        int edits = distance(word, names[i]);
        if (edits <= allowed) {
            best = names[i];
            allowed = edits - 1;
        }
    }
    for (size_t i = 0; !best && length >= 3 && i < count; i++)
        if (strncasecmp(word, names[i], length) == 0)
            best = names[i];
    return best;
}
