#include "common/text/suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static size_t suggest_min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

static bool suggest_same(char a, char b)
{
    a = a == '-' ? '_' : (char)tolower((unsigned char)a);
    b = b == '-' ? '_' : (char)tolower((unsigned char)b);
    return a == b;
}

size_t suggest_distance(const char *a, const char *b)
{
    size_t rows[3][SUGGEST_WORD_MAX + 1];
    size_t m = strlen(a), n = strlen(b);

    if (m > SUGGEST_WORD_MAX || n > SUGGEST_WORD_MAX)
        return SUGGEST_WORD_MAX;
    for (size_t j = 0; j <= n; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            row[j] = suggest_min3(above[j] + 1, row[j - 1] + 1,
                                  above[j - 1] + !suggest_same(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && suggest_same(a[i - 1], b[j - 2]) &&
                suggest_same(a[i - 2], b[j - 1]) && two_above[j - 2] + 1 < row[j])
                row[j] = two_above[j - 2] + 1;
        }
    }
    return rows[m % 3][n];
}

/* Letters are forgotten more often than mistaken: "modl" is rather model than mode. */
static bool suggest_has_letters(const char *candidate, const char *word)
{
    for (; *candidate && *word; candidate++)
        word += suggest_same(*candidate, *word);
    return !*word;
}

void suggest_offer(struct suggest *s, const char *candidate)
{
    size_t length = strlen(s->word), distance = suggest_distance(s->word, candidate);

    /* The start of a word is a good guess whatever is missing behind it. */
    if (length >= 2 && strncmp(s->word, candidate, length) == 0)
        distance = 1;
    if (distance > 2 || distance >= length)
        return;
    if (!s->best || distance < s->distance ||
        (distance == s->distance && suggest_has_letters(candidate, s->word) &&
         !suggest_has_letters(s->best, s->word))) {
        s->best = candidate;
        s->distance = distance;
    }
}
