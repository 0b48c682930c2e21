/*
 * The targets without libFuzzer: each input of a target's corpus, then inputs made of them by
 * changes that are drawn from a seed, so that every run tries the same. TAP, a check a target.
 *
 *   replay [--seconds N] [--seed N] CORPUS [TARGET...]     about N seconds in all (1)
 *   replay TARGET FILE...                                  these inputs alone, as a finding left
 * them
 *
 * What crashes is in $FUZZ_INPUT, where that names a file, before it is tried.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/system/file.h"
#include "tests/fuzz/fuzz.h"

#define SHARE 0.5 /* of the rate in the table: machines differ, tests are bounded */

struct input {
    uint8_t *data;
    size_t bytes;
};

struct corpus {
    struct input *items;
    size_t count;
};

static uint64_t random_state;

static size_t draw_replay(size_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return below ? (size_t)(random_state >> 20) % below : 0;
}

static struct input read_input(const char *path)
{
    struct input in;
    struct error e;

    FUZZ_CHECK(file_read(path, 1 << 20, (char **)&in.data, &in.bytes, &e) == 0, "%s", e.text);
    return in;
}

static struct corpus read_corpus(const char *folder, const char *target)
{
    struct corpus corpus = {0};
    struct dirent **names;
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", folder, target);
    int count = scandir(path, &names, NULL, alphasort);
    FUZZ_CHECK(count >= 0, "no corpus %s", path);
    corpus.items = calloc((size_t)count + 1, sizeof *corpus.items);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", folder, target, names[i]->d_name);
        if (names[i]->d_name[0] != '.')
            corpus.items[corpus.count++] = read_input(path);
        free(names[i]);
    }
    free(names);
    FUZZ_CHECK(corpus.count, "the corpus of %s is empty", target);
    return corpus;
}

/* ---- changes */

static void change_byte(struct input *in, size_t at)
{
    static const uint8_t special[] = {0, 1, 0x7f, 0x80, 0xff, '"', '{', '}', '0', '9', '-', '\n'};

    if (draw_replay(2))
        in->data[at] ^= (uint8_t)(1u << draw_replay(8));
    else
        in->data[at] = special[draw_replay(sizeof special)];
}

static void cut_out(struct input *in, size_t at)
{
    size_t left = in->bytes - at, cut = 1 + draw_replay(left < 16 ? left : 16);

    memmove(in->data + at, in->data + at + cut, left - cut);
    in->bytes -= cut;
}

/* A piece of another input of the corpus. */
static void put_in(struct input *in, size_t at, const struct input *other, size_t room)
{
    size_t from = draw_replay(other->bytes), most = other->bytes - from;
    size_t bytes = 1 + draw_replay(most < 64 ? most : 64);

    if (bytes > most || bytes > room - in->bytes)
        return;
    memmove(in->data + at + bytes, in->data + at, in->bytes - at);
    memcpy(in->data + at, other->data + from, bytes);
    in->bytes += bytes;
}

static void change(struct input *in, const struct corpus *corpus, size_t room)
{
    static const char *const numbers[] = {"-1",   "0",    "9223372036854775807", "1e308",
                                          "1e-9", "null", "18446744073709551616"};

    for (size_t n = 1 + draw_replay(3); n && in->bytes; n--) {
        size_t at = draw_replay(in->bytes);
        switch (draw_replay(5)) {
        case 0:
            cut_out(in, at);
            break;
        case 1:
            put_in(in, at, &corpus->items[draw_replay(corpus->count)], room);
            break;
        case 2: {
            const char *text = numbers[draw_replay(sizeof numbers / sizeof numbers[0])];
            struct input number = {(uint8_t *)(uintptr_t)text, strlen(text)};
            while (in->bytes > at + 1 && in->data[at] >= '0' && in->data[at] <= '9')
                cut_out(in, at);
            put_in(in, at, &number, room);
            break;
        }
        default:
            change_byte(in, at);
        }
    }
}

/* ---- running */

static void try_input(const struct fuzz_target *target, const struct input *in)
{
    const char *path = getenv("FUZZ_INPUT");
    FILE *out = path ? fopen(path, "wb") : NULL;

    if (out) {
        fwrite(in->data, 1, in->bytes, out);
        fclose(out);
    }
    /* A copy of just this size: reading past it is seen. */
    uint8_t *data = malloc(in->bytes ? in->bytes : 1);
    if (in->bytes)
        memcpy(data, in->data, in->bytes);
    target->run(data, in->bytes);
    free(data);
}

static void replay_target(const struct fuzz_target *target, const char *folder, double seconds,
                          uint64_t seed)
{
    struct corpus corpus = read_corpus(folder, target->name);
    size_t changes = (size_t)(seconds * SHARE * target->in_a_second);
    struct input in = {malloc(target->most_bytes), 0};

    random_state = seed * 0x9e3779b97f4a7c15u + 1;
    for (size_t i = 0; i < corpus.count; i++)
        try_input(target, &corpus.items[i]);
    for (size_t i = 0; i < changes; i++) {
        const struct input *from = &corpus.items[draw_replay(corpus.count)];
        if (from->bytes > target->most_bytes)
            continue;
        memcpy(in.data, from->data, in.bytes = from->bytes);
        change(&in, &corpus, target->most_bytes);
        try_input(target, &in);
    }
    printf("ok - %s: %zu inputs, %zu changes\n", target->name, corpus.count, changes);
    fflush(stdout);
    for (size_t i = 0; i < corpus.count; i++)
        free(corpus.items[i].data);
    free(corpus.items);
    free(in.data);
}

static int replay_files(const struct fuzz_target *target, char **files)
{
    for (; *files; files++) {
        struct input in = read_input(*files);
        try_input(target, &in);
        free(in.data);
    }
    return 0;
}

int main(int count, char **words)
{
    double seconds = 1;
    uint64_t seed = 1;
    int at = 1, targets = 0;

    log_set_level(LOG_LEVEL_ERROR);
    for (; at + 1 < count && words[at][0] == '-'; at += 2)
        if (strcmp(words[at], "--seconds") == 0)
            seconds = strtod(words[at + 1], NULL);
        else
            seed = strtoull(words[at + 1], NULL, 10);
    if (at >= count)
        return 2;
    if (fuzz_target_find(words[at]))
        return replay_files(fuzz_target_find(words[at]), &words[at + 1]);
    const char *folder = words[at++];
    for (size_t i = 0; fuzz_target_at(i); i++)
        targets += at == count;
    targets += count - at;
    for (size_t i = 0; fuzz_target_at(i); i++) {
        bool wanted = at == count;
        for (int k = at; k < count; k++)
            wanted = wanted || strcmp(words[k], fuzz_target_at(i)->name) == 0;
        if (wanted)
            replay_target(fuzz_target_at(i), folder, seconds / targets, seed);
    }
    return 0;
}
