#include "common/dataset/file_list.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/run/stall_report.h"
#include "common/system/content.h"
#include "common/system/file.h"
#include "common/system/open_beneath.h"
#include "common/text.h"
#include "common/xalloc.h"

#define NAMED_AT_MOST 5 /* files named in a remark */

struct shard_number {
    const char *name; /* the full name */
    int name_bytes;
    int number, of;
    const char *ending;
};

static bool list_parse_shard(const char *path, struct shard_number *s)
{
    const char *dash;

    *s = (struct shard_number){.name = file_base_name(path)};
    for (const char *of = s->name; (of = strstr(of, "-of-")); of++) {
        for (dash = of; dash > s->name && isdigit((unsigned char)dash[-1]);)
            dash--;
        size_t digits = strspn(of + 4, "0123456789");
        if (dash == of || of - dash > 9 || digits == 0 || digits > 9 || dash == s->name ||
            dash[-1] != '-')
            continue;
        s->name_bytes = (int)(dash - 1 - s->name);
        s->number = (int)strtol(dash, NULL, 10);
        s->of = (int)strtol(of + 4, NULL, 10);
        s->ending = of + 4 + digits;
        return s->number <= s->of;
    }
    return false;
}

/* Returns whether the name has such an ending; other files are then not part of the data set. */
static bool list_shard_is_numbered(const char *name)
{
    static const char *const endings[] = {"", ".tfrecord", ".tfrecords", ".tfrec"};
    struct shard_number s;

    for (size_t i = 0; list_parse_shard(name, &s) && i < sizeof endings / sizeof *endings; i++)
        if (strcmp(s.ending, endings[i]) == 0)
            return true;
    return false;
}

static bool list_is_side_file(const char *name)
{
    static const char *const endings[] = {
        ".idx",     ".index", ".bak", ".old",  ".orig",   ".tmp",    ".temp", ".part",
        ".partial", ".swp",   ".swo", ".lock", ".log",    ".txt",    ".json", ".csv",
        ".tsv",     ".md",    ".md5", ".sha1", ".sha256", ".sha512", ".crc",  ".xxh",
    };
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return true;
    return name[strlen(name) - 1] == '~' || strstr(name, " (");
}

static int list_shard_number(const char *path, int other)
{
    struct shard_number s;

    return list_parse_shard(path, &s) ? s.number : other;
}

static int list_shards_by_number(const void *a, const void *b)
{
    const struct shard_number *x = a, *y = b;
    return x->number != y->number ? (x->number < y->number ? -1 : 1) : strcmp(x->name, y->name);
}

static int list_shards_check_one_set(const char *folder, const struct shard_number *s, size_t n,
                                     struct error *e)
{
    for (size_t i = 1; i < n; i++) {
        if (s[i].of != s[0].of || s[i].name_bytes != s[0].name_bytes ||
            strncmp(s[i].name, s[0].name, (size_t)s[0].name_bytes) != 0)
            return error_set(
                e, ERR_INVALID,
                "%s contains shards of two data sets (%s and %s): use a separate folder for each",
                folder, s[0].name, s[i].name);
        if (s[i].number == s[i - 1].number)
            return error_set(e, ERR_INVALID,
                             "%s contains two shards with the same number, %s and %s: remove one",
                             folder, s[i - 1].name, s[i].name);
    }
    return 0;
}

/* Numbers start at 0; some writers start at 1. */
static int list_shards_check_none_missing(const char *folder, const struct shard_number *s,
                                          size_t n, struct dataset_part part, struct error *e)
{
    int first = s[0].number > 0 && s[n - 1].number == s[0].of, next = first, i = 0;

    if (s[0].number == 0 && s[n - 1].number == s[0].of)
        return error_set(e, ERR_INVALID, "unexpected shard in %s: %s, but numbers start at 0",
                         folder, s[n - 1].name);
    while (next % part.of != part.number)
        next++;
    for (; i < (int)n && (s[i].number % part.of != part.number || s[i].number == next); i++)
        next += s[i].number == next ? part.of : 0;
    if (next >= s[0].of + first)
        return 0;
    return error_set(e, ERR_NOT_FOUND, "shard %.*s-%05d-of-%05d%s is missing in %s%s",
                     s[0].name_bytes, s[0].name, next, s[0].of, s[0].ending, folder,
                     part.of == 1 && strncmp(s[0].name, "train-", 6) == 0
                         ? " (if each node has only its own shards, set data.locality to \"node\")"
                         : "");
}

static int list_shards_check(char *const *paths, size_t count, const char *folder,
                             struct dataset_part part, struct error *e)
{
    struct shard_number *s = xcalloc(count + 1, sizeof *s);
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        n += list_parse_shard(paths[i], &s[n]);
    qsort(s, n, sizeof *s, list_shards_by_number);
    int rc = list_shards_check_one_set(folder, s, n, e);
    if (rc == 0 && n > 0)
        rc = list_shards_check_none_missing(folder, s, n, part, e);
    free(s);
    return rc;
}

/* Names in a folder, sorted bytewise, independently of file system and locale */
struct names {
    struct dirent **entries;
    int count;
};

static int list_not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int list_compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int list_names_read(const char *folder, struct names *names, struct error *e)
{
    struct stat st;
    int fd = -1, status = open_beneath_stat(folder, &st, e);

    *names = (struct names){0};
    if (status == -ERR_NOT_FOUND)
        return error_set(e, ERR_NOT_FOUND, "there is no data set at %s", folder);
    if (!status && !S_ISDIR(st.st_mode))
        return error_set(
            e, ERR_INVALID,
            "%s is a file; specify the folder that contains the shards or class folders", folder);
    if (!status && (fd = open_beneath_folder(folder, e)) < 0)
        status = fd;
    if (status)
        return status;
    names->count = scandirat(fd, ".", &names->entries, list_not_hidden, list_compare_names);
    stall_progress_add(1);
    if (names->count < 0) {
        *names = (struct names){0};
        status = error_set_errno(e, errno, "cannot read the folder %s", folder);
    }
    close(fd);
    return status;
}

static void list_names_free(struct names *names)
{
    for (int i = 0; i < names->count; i++)
        free(names->entries[i]);
    free(names->entries);
}

static bool list_is_folder(const char *folder, const struct dirent *entry)
{
    struct stat st;
    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK)
        return entry->d_type == DT_DIR;
    char *path = xasprintf("%s/%s", folder, entry->d_name);
    bool yes = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    free(path);
    return yes;
}

int dataset_list_add(struct dataset_list *list, char *path, uint64_t bytes, int64_t list_changed_ns,
                     int32_t label, struct error *e)
{
    const struct array arrays[] = {ARRAY(list->files), ARRAY(list->bytes), ARRAY(list->changed_ns),
                                   ARRAY(list->labels)};

    if (!arrays_grow(arrays, 4, list->count, &list->capacity)) {
        free(path);
        return error_set(e, ERR_NO_MEMORY, "no memory for the list of files in %s", list->folder);
    }
    list->files[list->count] = path;
    list->bytes[list->count] = bytes;
    list->changed_ns[list->count] = list_changed_ns;
    list->labels[list->count] = label;
    list->count++;
    return 0;
}

static int64_t list_changed_ns(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static int list_file(struct dataset_list *list, const char *folder, const char *name, int32_t label,
                     struct error *e)
{
    struct stat st;
    char *path = xasprintf("%s/%s", folder, name);
    int rc = open_beneath_stat(path, &st, e);

    if (!rc && !S_ISREG(st.st_mode))
        rc = error_set(e, ERR_INVALID, "%s is %s, not a regular file", path, file_kind(st.st_mode));
    if (rc) {
        free(path);
        return rc;
    }
    return dataset_list_add(list, path, (uint64_t)st.st_size, label < 0 ? list_changed_ns(&st) : 0,
                            label, e);
}

static const char *const prefixes[] = {
    [DATASET_TRAIN] = "train-",
    [DATASET_EVAL] = "validation-",
};

struct named {
    int count;
    char text[NAMED_AT_MOST * 98];
};

static void list_named_add(struct named *n, const char *name)
{
    char shown[96];
    size_t used = strlen(n->text);

    if (n->count++ >= NAMED_AT_MOST)
        return;
    text_escape(shown, sizeof shown, name, strlen(name), "");
    snprintf(n->text + used, sizeof n->text - used, "%s%s", used ? ", " : "", shown);
}

static void list_remark(struct dataset_list *list, const struct named *n, const char *words)
{
    size_t used = strlen(list->remarks), capacity = sizeof list->remarks - used;
    char more[32] = "";

    if (n->count == 0)
        return;
    if (n->count > NAMED_AT_MOST)
        snprintf(more, sizeof more, " and %d more", n->count - NAMED_AT_MOST);
    if ((size_t)snprintf(list->remarks + used, capacity, "%s%s: %s: %s%s", used ? "\n" : "",
                         list->folder, words, n->text, more) >= capacity)
        list->remarks[used] = '\0';
}

static bool list_begins_with(const char *name, enum dataset_role role)
{
    return strncmp(name, prefixes[role], strlen(prefixes[role])) == 0;
}

static bool list_is_shard(const char *folder, const struct dirent *entry, enum dataset_role role)
{
    return list_begins_with(entry->d_name, role) && !list_is_folder(folder, entry);
}

int dataset_list_node(const struct dataset_list *list, int nodes, uint32_t file)
{
    return (list->format == DATASET_TFRECORD ? list_shard_number(list->files[file], (int)file)
                                             : (int)file) %
           nodes;
}

static int list_shards_of(const struct names *names, enum dataset_role role,
                          struct dataset_list *list, struct error *e)
{
    struct named others = {0}, empty = {0};
    bool numbered = false;
    int rc = 0;

    for (int i = 0; i < names->count && !numbered; i++)
        numbered = list_is_shard(list->folder, names->entries[i], role) &&
                   list_shard_is_numbered(names->entries[i]->d_name);
    for (int i = 0; i < names->count && rc == 0; i++) {
        const char *name = names->entries[i]->d_name;
        if (!list_is_shard(list->folder, names->entries[i], role))
            continue;
        if (numbered ? !list_shard_is_numbered(name) : list_is_side_file(name)) {
            list_named_add(&others, name);
            continue;
        }
        rc = list_file(list, list->folder, name, -1, e);
        if (rc == 0 && list->bytes[list->count - 1] == 0)
            list_named_add(&empty, name);
    }
    list_remark(list, &others, "these files are not shards of the data set and are ignored");
    list_remark(list, &empty, "these shards are empty (0 bytes)");
    return rc;
}

static int list_shards(const struct names *names, enum dataset_role role, struct dataset_part part,
                       struct dataset_list *list, struct error *e)
{
    int rc = list_shards_of(names, role, list, e);

    if (rc == 0 && list->count == 0)
        rc = list_shards_of(names, role == DATASET_TRAIN ? DATASET_EVAL : DATASET_TRAIN, list, e);
    if (rc || list->count == 0)
        return rc;
    list->format = DATASET_TFRECORD;
    return list_shards_check(list->files, list->count, list->folder, part, e);
}

bool dataset_is_image_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0 ||
                   strcasecmp(dot, ".png") == 0);
}

static int list_refuse_name(const char *folder, const char *name, struct error *e)
{
    char head[CONTENT_HEAD_BYTES];
    char *path = xasprintf("%s/%s", folder, name);
    int fd = open_beneath_file(path, e);
    ssize_t got = fd < 0 ? 0 : pread(fd, head, sizeof head, 0);
    const struct content *c = got > 0 ? content_of(head, (size_t)got) : NULL;

    if (fd >= 0)
        close(fd);
    free(path);
    return error_set(
        e, ERR_INVALID,
        "%s/%s is not a JPEG file or a PNG file: its name should end in .jpg, .jpeg or "
        ".png%s%s%s%s",
        folder, name, c ? "; it is " : "", c ? c->what : "", c && c->advice ? ": " : "",
        c && c->advice ? c->advice : "");
}

static int list_class(struct dataset_list *list, int32_t label, struct error *e)
{
    struct names images = {0};
    char *folder = xasprintf("%s/%s", list->folder, list->classes[label]);
    int rc = list_names_read(folder, &images, e);

    for (int i = 0; i < images.count && rc == 0; i++) {
        const char *image = images.entries[i]->d_name;
        if (!dataset_is_image_name(image) && list_is_folder(folder, images.entries[i]))
            rc = error_set(e, ERR_INVALID,
                           "%s/%s is a folder, but class folders may contain only images: classes "
                           "cannot be nested",
                           folder, image);
        else if (!dataset_is_image_name(image))
            rc = list_refuse_name(folder, image, e);
        else
            rc = list_file(list, folder, image, label, e);
    }
    list_names_free(&images);
    free(folder);
    return rc;
}

static int list_no_data_set(const char *folder, struct error *e)
{
    return error_set(e, ERR_INVALID,
                     "no data set in %s: expected shards named train-* or validation-*, or a "
                     "folder of JPEG or PNG files for each class",
                     folder);
}

int dataset_list_images(struct dataset_list *list, struct error *e)
{
    int rc = 0;

    for (int i = 0; i < list->class_count && rc == 0; i++)
        rc = list_class(list, i, e);
    if (rc == 0 && list->count == 0)
        rc = list_no_data_set(list->folder, e);
    return rc;
}

void dataset_list_note_empty(struct dataset_list *list)
{
    struct named empty = {0};
    size_t next = 0;

    for (int class = 0; class < list->class_count && list->role == DATASET_TRAIN; class ++) {
        if (next >= list->count || list->labels[next] != class)
            list_named_add(&empty, list->classes[class]);
        while (next < list->count && list->labels[next] == class)
            next++;
    }
    list_remark(list, &empty, "these folders have no images and count as classes all the same");
}

static bool list_is_system_folder(const char *name)
{
    static const char *const names[] = {
        "lost+found",   "@eaDir",      "#recycle",
        "#snapshot",    "@Recycle",    "__MACOSX",
        "$RECYCLE.BIN", "__pycache__", "System Volume Information",
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool list_is_role_like(const char *name)
{
    static const char *const roles[] = {
        "training", "trainval", "train",      "testing", "test", "validation", "validate",
        "valid",    "val",      "evaluation", "eval",    "dev",  "holdout",
    };
    static const char *const tails[] = {"",        "images", "image", "imgs",   "img", "data",
                                        "dataset", "set",    "split", "folder", "jpg", "jpeg"};

    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        const char *rest = name + strlen(roles[i]);
        if (strncasecmp(name, roles[i], strlen(roles[i])) != 0)
            continue;
        rest += strspn(rest, "-_. 0123456789");
        for (size_t t = 0; t < sizeof tails / sizeof *tails; t++)
            if (strcasecmp(rest, tails[t]) == 0)
                return true;
    }
    return false;
}

/* A single such folder beside other classes may be a class: CIFAR-100 has trains. */
static int list_check_no_roles(struct dataset_list *list, struct error *e)
{
    struct named roles = {0};
    const char *train = NULL, *eval = NULL;

    for (int i = 0; i < list->class_count; i++) {
        const char *name = list->classes[i];
        if (!list_is_role_like(name))
            continue;
        list_named_add(&roles, name);
        if (strncasecmp(name, "train", 5) == 0)
            train = name;
        else
            eval = eval ? eval : name;
    }
    if (roles.count == 0)
        return 0;
    if (roles.count == 1 && list->class_count > 1) {
        if (!train)
            list_remark(list, &roles, "this class has the name of a part of a data set");
        return 0;
    }
    return error_set(e, ERR_INVALID,
                     "%s holds the folder%s %s: parts of a data set, not classes; give %s/%s as "
                     "the training data and %s/%s as the evaluation data (train-prep convert takes "
                     "both together where they are called train and validation), each with a "
                     "folder of images for each class",
                     list->folder, plural(roles.count), roles.text, list->folder,
                     train ? train : "train", list->folder, eval ? eval : "validation");
}

static void list_class_folder(struct dataset_list *list, const char *name)
{
    struct stat st;
    char *path = xasprintf("%s/%s", list->folder, name);
    bool seen = stat(path, &st) == 0;

    free(path);
    list->class_changed_ns[list->class_count] = seen ? list_changed_ns(&st) : 0;
    list->classes[list->class_count++] = xstrdup(name);
}

static int list_classes(const struct names *names, struct dataset_list *list, struct error *e)
{
    size_t capacity = (size_t)names->count + 1;
    struct named left_out = {0};

    list->format = DATASET_FOLDER;
    list->classes = xcalloc(capacity, sizeof *list->classes);
    list->class_changed_ns = xcalloc(capacity, sizeof *list->class_changed_ns);
    for (int i = 0; i < names->count; i++) {
        const char *name = names->entries[i]->d_name;
        if (!list_is_folder(list->folder, names->entries[i]))
            continue;
        if (list_is_system_folder(name))
            list_named_add(&left_out, name);
        else
            list_class_folder(list, name);
    }
    list_remark(list, &left_out, "these system folders are not classes and are ignored");
    return list->class_count > 0 ? list_check_no_roles(list, e) : list_no_data_set(list->folder, e);
}

static bool list_is_role_name(const char *name, enum dataset_role role)
{
    if (role == DATASET_TRAIN)
        return strcmp(name, "train") == 0;
    return strcmp(name, "validation") == 0 || strcmp(name, "val") == 0;
}

/* Returns the folder to enter, or NULL. A class may be named "train" if there are other classes,
 * but not "val" or "validation". */
static const char *list_role_folder(const char *folder, const struct names *names,
                                    enum dataset_role role)
{
    enum dataset_role other = role == DATASET_TRAIN ? DATASET_EVAL : DATASET_TRAIN;
    const char *found = NULL;
    bool has_other_role = false, has_more = false;

    for (int i = 0; i < names->count; i++) {
        const char *name = names->entries[i]->d_name;
        if (!list_is_folder(folder, names->entries[i]) || list_is_system_folder(name))
            continue;
        if (list_is_role_name(name, role))
            found = name;
        else if (list_is_role_name(name, other))
            has_other_role = true;
        else
            has_more = true;
    }
    return has_more && !has_other_role ? NULL : found;
}

static int list_lacks_role(struct dataset_list *list, enum dataset_role role, const char *other,
                           struct error *e)
{
    static const char *const words[] = {[DATASET_TRAIN] = "train", [DATASET_EVAL] = "validation"};
    enum dataset_role other_role = role == DATASET_TRAIN ? DATASET_EVAL : DATASET_TRAIN;
    char *folder = xasprintf("%s/%s", list->folder, other);
    struct names names = {0};
    bool shards = false;

    if (list_names_read(folder, &names, e) == 0)
        for (int i = 0; i < names.count && !shards; i++)
            shards = list_is_shard(folder, names.entries[i], other_role);
    list_names_free(&names);
    free(folder);
    list->lacks_role = true;
    const char *what = shards ? "shards" : "images";
    return error_set(e, ERR_INVALID,
                     "there are no %s %s in %s, only %s %s in %s/%s; give that folder if these are "
                     "meant",
                     words[role], what, list->folder, words[other_role], what, list->folder, other);
}

static int list_folder(struct dataset_list *list, enum dataset_role role, struct dataset_part part,
                       bool enter, struct error *e)
{
    struct names names = {0};
    int rc = list_names_read(list->folder, &names, e);

    if (rc == 0)
        rc = list_shards(&names, role, part, list, e);
    if (rc == 0 && list->count == 0) {
        enum dataset_role other = role == DATASET_TRAIN ? DATASET_EVAL : DATASET_TRAIN;
        const char *deeper = enter ? list_role_folder(list->folder, &names, role) : NULL;
        const char *not_here = enter ? list_role_folder(list->folder, &names, other) : NULL;
        char *folder = deeper ? xasprintf("%s/%s", list->folder, deeper) : NULL;
        if (folder) {
            free(list->folder);
            list->folder = folder;
            rc = list_folder(list, role, part, false, e);
        } else if (not_here) {
            rc = list_lacks_role(list, role, not_here, e);
        } else {
            rc = list_classes(&names, list, e);
        }
    }
    list_names_free(&names);
    return rc;
}

static int list_with_remarks(struct dataset_list *list, int rc, struct error *e)
{
    if (rc == 0 || !e || !*list->remarks)
        return rc;
    struct error was = *e;
    for (char *line = list->remarks; (line = strchr(line, '\n'));)
        *line = ';';
    return error_set(e, was.code, "%s; %s", was.text, list->remarks);
}

int dataset_list_find(const char *path, enum dataset_role role, struct dataset_part part,
                      struct dataset_list *list, struct error *e)
{
    *list = (struct dataset_list){.role = role};
    list->folder = xstrdup(path);
    for (size_t end = strlen(list->folder); end > 1 && list->folder[end - 1] == '/'; end--)
        list->folder[end - 1] = '\0';
    return list_with_remarks(list, list_folder(list, role, part, true, e), e);
}

int dataset_list(const char *path, enum dataset_role role, struct dataset_list *list,
                 struct error *e)
{
    int rc = dataset_list_find(path, role, (struct dataset_part){0, 1}, list, e);
    if (rc == 0 && list->format == DATASET_FOLDER)
        rc = dataset_list_images(list, e);
    if (rc == 0)
        dataset_list_note_empty(list);
    return rc;
}

void dataset_list_free(struct dataset_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->files[i]);
    for (int i = 0; i < list->class_count; i++)
        free(list->classes[i]);
    free(list->classes);
    free(list->class_changed_ns);
    free(list->changed_ns);
    free(list->files);
    free(list->bytes);
    free(list->labels);
    free(list->folder);
}
